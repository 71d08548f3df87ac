package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tenantdal/tenantdal/tenant"
)

// fault is what is wrong with a line: field and reason of a [LineError].
type fault struct{ field, reason string }

// parseLine reads one line and checks its form: the JSON, the op, and names and types of the fields. What the fields say is checked by [checker].
// With a fault comes what was read before it.
func parseLine(text []byte) (Line, *fault) {
	values, f := parseObject(text)
	if f != nil {
		return Line{}, f
	}
	op, f := values.text("op")
	if f != nil {
		return Line{}, f
	}
	shape, ok := shapes[Op(op)]
	if !ok {
		return Line{}, &fault{"op", fmt.Sprintf("unknown op %q", clip(op))}
	}
	if f := values.unknown(op, shape); f != nil {
		return Line{}, f
	}
	line := Line{Op: Op(op)}
	for _, fd := range shape {
		switch {
		case fd.name == fieldQty.name:
			line.Qty, f = values.integer(fd.name)
		case fd.name == fieldModel.name:
			line.Model, f = values.model(fd.name)
		default:
			*fd.text(&line), f = values.text(fd.name)
		}
		if f != nil {
			return line, f
		}
	}
	return line, nil
}

// object holds the fields of a flat JSON object by name: strings as string, numbers as json.Number, null as nil, booleans as bool, and lists and objects as json.Delim.
type object struct {
	names  []string // in the order of the line
	values map[string]any
}

// parseObject reads a line that must be one JSON object. It is stricter than encoding/json, which takes field names in any case, the last of two equal
// ones, and U+FFFD for what is not UTF-8.
func parseObject(text []byte) (object, *fault) {
	if bytes.HasPrefix(text, []byte("\ufeff")) {
		return object{}, &fault{"", "malformed JSON: it begins with a byte order mark"}
	}
	if !utf8.Valid(text) {
		return object{}, &fault{"", fmt.Sprintf("not UTF-8 at byte %d", invalidAt(text)+1)}
	}
	// The decoder's tokens alone would let some malformed text pass, so the whole is checked first.
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return object{}, &fault{"", fmt.Sprintf("malformed JSON at byte %d: %v", syntax.Offset, err)}
		}
		return object{}, &fault{"", fmt.Sprintf("malformed JSON: %v", err)}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return object{}, &fault{"", "not a JSON object"}
	}
	o := object{values: make(map[string]any)}
	for dec.More() {
		name, value, f := parseField(dec, text)
		if f != nil {
			return object{}, f
		}
		if _, twice := o.values[name]; twice {
			return object{}, &fault{name, "given twice"}
		}
		o.names = append(o.names, name)
		o.values[name] = value
	}
	return o, nil
}

// parseField reads a name and its value from text, which is known to be well formed.
func parseField(dec *json.Decoder, text []byte) (name string, value any, f *fault) {
	at := dec.InputOffset()
	token, err := dec.Token()
	if err != nil {
		return "", nil, &fault{"", fmt.Sprintf("malformed JSON: %v", err)}
	}
	name, _ = token.(string)
	if loneSurrogate(text[at:dec.InputOffset()]) {
		return "", nil, &fault{name, "its name holds half of a surrogate pair"}
	}
	at = dec.InputOffset()
	if value, err = dec.Token(); err != nil {
		return "", nil, &fault{name, fmt.Sprintf("malformed JSON: %v", err)}
	}
	if loneSurrogate(text[at:dec.InputOffset()]) {
		return "", nil, &fault{name, "holds half of a surrogate pair"}
	}
	if _, nested := value.(json.Delim); nested {
		if err := skipNested(dec); err != nil {
			return "", nil, &fault{name, fmt.Sprintf("malformed JSON: %v", err)}
		}
	}
	return name, value, nil
}

// skipNested reads up to the end of the list or object whose first token was just read.
func skipNested(dec *json.Decoder) error {
	for depth := 1; depth > 0; {
		token, err := dec.Token()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// unknown finds the first field that the op does not have.
func (o object) unknown(op string, shape []field) *fault {
	known := map[string]bool{"op": true}
	for _, fd := range shape {
		known[fd.name] = true
	}
	for _, name := range o.names {
		if !known[name] {
			return &fault{name, fmt.Sprintf("unknown in a %s line", op)}
		}
	}
	return nil
}

func (o object) text(name string) (string, *fault) {
	value, ok := o.values[name]
	if !ok {
		return "", &fault{name, "missing"}
	}
	s, ok := value.(string)
	if !ok {
		return "", &fault{name, fmt.Sprintf("want text, got %s", kind(value))}
	}
	return s, nil
}

func (o object) integer(name string) (int64, *fault) {
	value, ok := o.values[name]
	if !ok {
		return 0, &fault{name, "missing"}
	}
	number, ok := value.(json.Number)
	if !ok {
		return 0, &fault{name, fmt.Sprintf("want a whole number, got %s", kind(value))}
	}
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil {
		return 0, &fault{name, fmt.Sprintf("%s is no whole number of 64 bits", clip(number.String()))}
	}
	return n, nil
}

func (o object) model(name string) (tenant.Model, *fault) {
	word, f := o.text(name)
	if f != nil {
		return 0, f
	}
	model, err := tenant.ParseModel(word)
	if err != nil {
		return 0, &fault{name, err.Error()}
	}
	return model, nil
}

// kind names the JSON type of a value for people.
func kind(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return fmt.Sprintf("the text %q", clip(v))
	case json.Number:
		return fmt.Sprintf("the number %s", clip(v.String()))
	case json.Delim:
		if v == '[' {
			return "a list"
		}
		return "an object"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// loneSurrogate says whether a piece of valid JSON escapes half of a surrogate pair, which stands for no character.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		high, ok := escapedUnit(raw[i:])
		if !ok {
			i++ // the escaped character, which may be a backslash
			continue
		}
		i += 5
		if !utf16.IsSurrogate(high) {
			continue
		}
		low, ok := escapedUnit(raw[i+1:])
		if !ok || utf16.DecodeRune(high, low) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// escapedUnit reads the UTF-16 unit that raw begins with in the form \uXXXX.
func escapedUnit(raw []byte) (unit rune, ok bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}

// invalidAt returns the offset, from 0, of the first byte that is not UTF-8.
func invalidAt(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}
