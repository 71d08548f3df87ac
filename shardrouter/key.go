package shardrouter

import (
	"fmt"
	"reflect"
	"strconv"
)

// Key is a shard key in its canonical text: the bytes that are hashed. A string or []byte is its own text, an integer is
// its decimal text, so 7, "7", []byte("7") and uint64(7) are one key, and "007" is another.
type Key string

// KeyOf returns the canonical key of v: a string, a []byte, or a signed or unsigned integer of any width, named kinds
// included.
//
// It returns [ErrEmptyKey] for an empty (or nil) string or []byte, [ErrZeroKey] for 0 and "0", and a [*KeyTypeError] for
// everything else: nil, pointers, floats, booleans, structs. It never guesses. It does not allocate for a string, nor
// for the integers 1 to 99.
func KeyOf(v any) (Key, error) {
	switch v := v.(type) {
	case Key:
		return textKey(string(v))
	case string:
		return textKey(v)
	case []byte:
		return textKey(string(v))
	case int:
		return intKey(int64(v))
	case int64:
		return intKey(v)
	case int32:
		return intKey(int64(v))
	case int16:
		return intKey(int64(v))
	case int8:
		return intKey(int64(v))
	case uint:
		return uintKey(uint64(v))
	case uint64:
		return uintKey(v)
	case uint32:
		return uintKey(uint64(v))
	case uint16:
		return uintKey(uint64(v))
	case uint8:
		return uintKey(uint64(v))
	case nil:
		return "", &KeyTypeError{Type: "nil"}
	}
	return namedKey(v)
}

// namedKey is KeyOf for types declared on one of the kinds, such as type PlayerID int64. uintptr is an address, not an
// id, and stays out.
func namedKey(v any) (Key, error) {
	rv := reflect.ValueOf(v)
	switch rv.Kind() {
	case reflect.String:
		return textKey(rv.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intKey(rv.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintKey(rv.Uint())
	case reflect.Slice:
		if rv.Type().Elem().Kind() == reflect.Uint8 {
			return textKey(string(rv.Bytes()))
		}
	}
	return "", &KeyTypeError{Type: fmt.Sprintf("%T", v)}
}

func textKey(s string) (Key, error) {
	if err := Key(s).Validate(); err != nil {
		return "", err
	}
	return Key(s), nil
}

func intKey(n int64) (Key, error) {
	if n == 0 {
		return "", ErrZeroKey
	}
	return Key(strconv.FormatInt(n, 10)), nil
}

func uintKey(n uint64) (Key, error) {
	if n == 0 {
		return "", ErrZeroKey
	}
	return Key(strconv.FormatUint(n, 10)), nil
}

// Validate returns [ErrEmptyKey] for "", [ErrZeroKey] for "0" and nil for every other key.
func (k Key) Validate() error {
	switch k {
	case "":
		return ErrEmptyKey
	case "0":
		return ErrZeroKey
	}
	return nil
}
