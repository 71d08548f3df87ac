package shardrouter_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/shardrouter"
)

type (
	namedString string
	namedInt    int64
	namedUint   uint32
	namedBytes  []byte
	namedByte   uint8
)

func TestKeyOf_S11_OneKeyForOneID(t *testing.T) {
	t.Parallel()
	for want, forms := range map[shardrouter.Key][]any{
		"1": {
			"1", []byte("1"), shardrouter.Key("1"), namedString("1"), namedBytes("1"), json.RawMessage("1"), sql.RawBytes("1"), json.Number("1"),
			int(1), int8(1), int16(1), int32(1), int64(1), namedInt(1), time.Duration(1),
			uint(1), uint8(1), uint16(1), uint32(1), uint64(1), namedUint(1), namedByte(1),
		},
		"-3":                   {"-3", int(-3), int8(-3), int16(-3), int32(-3), int64(-3), namedInt(-3)},
		"100":                  {"100", int8(100), uint8(100), int64(100), []byte("100")},
		"9223372036854775807":  {int64(math.MaxInt64), uint64(math.MaxInt64), "9223372036854775807"},
		"-9223372036854775808": {int64(math.MinInt64), "-9223372036854775808"},
		"18446744073709551615": {uint64(math.MaxUint64), "18446744073709551615"},
		"007":                  {"007", []byte("007")},
		"7 ":                   {"7 "},
		"星尘":                   {"星尘", []byte("星尘")},
		"\x00":                 {"\x00", []byte{0}},
		"00":                   {"00"},
	} {
		for _, v := range forms {
			if got, err := shardrouter.KeyOf(v); err != nil || got != want {
				t.Errorf("KeyOf(%T %v) = %q, %v, want %q", v, v, got, err, want)
			}
		}
	}
}

func TestKeyOf_S14_ZeroAndEmpty(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"", []byte{}, []byte(nil), shardrouter.Key(""), namedString(""), namedBytes(nil)} {
		if got, err := shardrouter.KeyOf(v); !errors.Is(err, shardrouter.ErrEmptyKey) || got != "" {
			t.Errorf("KeyOf(%T %v) = %q, %v, want ErrEmptyKey", v, v, got, err)
		}
	}
	for _, v := range []any{
		"0", []byte("0"), shardrouter.Key("0"), namedString("0"), namedBytes("0"), int(0), int8(0), int16(0), int32(0), int64(0), namedInt(0),
		uint(0), uint8(0), uint16(0), uint32(0), uint64(0), namedUint(0), namedByte(0), time.Duration(0),
	} {
		if got, err := shardrouter.KeyOf(v); !errors.Is(err, shardrouter.ErrZeroKey) || got != "" {
			t.Errorf("KeyOf(%T %v) = %q, %v, want ErrZeroKey", v, v, got, err)
		}
	}
	for key, want := range map[shardrouter.Key]error{"": shardrouter.ErrEmptyKey, "0": shardrouter.ErrZeroKey, "1": nil, "00": nil} {
		if err := key.Validate(); !errors.Is(err, want) {
			t.Errorf("Key(%q).Validate() = %v, want %v", string(key), err, want)
		}
	}
}

func TestKeyOf_S11_WrongTypes(t *testing.T) {
	t.Parallel()
	one := 1
	for want, v := range map[string]any{
		"nil":            nil,
		"float64":        1.0,
		"float32":        float32(1),
		"bool":           true,
		"*int":           &one,
		"uintptr":        uintptr(1),
		"complex128":     complex(1, 0),
		"[]int":          []int{1},
		"[]string":       []string{"1"},
		"[1]uint8":       [1]byte{1},
		"time.Time":      time.Unix(1, 0),
		"sql.NullString": sql.NullString{String: "1", Valid: true},
		"*string":        (*string)(nil),
		"map[string]int": map[string]int{},
	} {
		got, err := shardrouter.KeyOf(v)
		var typeErr *shardrouter.KeyTypeError
		if !errors.As(err, &typeErr) || typeErr.Type != want || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("KeyOf(%T) = %q, %v, want a *KeyTypeError for %s", v, got, err, want)
		}
	}
}

func TestKeyOf_CopiesBytes(t *testing.T) {
	t.Parallel()
	b := []byte("abc")
	key, err := shardrouter.KeyOf(b)
	b[0] = 'x'
	if err != nil || key != "abc" {
		t.Errorf("KeyOf = %q, %v after the slice changed, want abc", key, err)
	}
}

func TestKeyOf_Allocations(t *testing.T) {
	for name, v := range map[string]any{"string": "player-1", "Key": shardrouter.Key("player-1"), "named string": namedString("x"), "7": 7, "int64 99": int64(99), "uint64 99": uint64(99)} {
		if got := testing.AllocsPerRun(100, func() {
			if _, err := shardrouter.KeyOf(v); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("KeyOf(%s): %v allocations, want 0", name, got)
		}
	}
}
