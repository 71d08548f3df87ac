package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// Write writes the lines of the trace, each at its number. [Read] reads them back as an equal trace.
//
// The numbers of setup lines and donations together must be 1, 2, 3 and so on, each once, and ascend within both; text must be UTF-8, since JSON holds
// nothing else. Otherwise Write returns an error, and may have written some lines. Whether the lines make a trace that Read accepts is not checked.
func Write(w io.Writer, t *Trace) error {
	out := bufio.NewWriter(w)
	setup, donations := t.Setup, t.Donations
	var b []byte
	for no := 1; len(setup)+len(donations) > 0; no++ {
		from := &setup
		if len(setup) == 0 || len(donations) > 0 && donations[0].No == no {
			from = &donations
		}
		line := &(*from)[0]
		*from = (*from)[1:]
		if line.No != no {
			return fmt.Errorf("trace: write: no line has number %d", no)
		}
		var err error
		if b, err = appendLine(b[:0], line); err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return fmt.Errorf("trace: write: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("trace: write: %w", err)
	}
	return nil
}

// appendLine appends l as JSON, with a line feed.
func appendLine(b []byte, l *Line) ([]byte, error) {
	shape, ok := shapes[l.Op]
	if !ok {
		return nil, fmt.Errorf("trace: write: line %d: unknown op %q", l.No, l.Op)
	}
	b = append(b, `{"op": "`...)
	b = append(b, l.Op...)
	b = append(b, '"')
	for _, fd := range shape {
		b = append(b, `, "`...)
		b = append(b, fd.name...)
		b = append(b, `": `...)
		var text string
		switch {
		case fd.name == fieldQty.name:
			b = strconv.AppendInt(b, l.Qty, 10)
			continue
		case fd.name == fieldModel.name:
			text = l.Model.String()
		default:
			text = *fd.text(l)
		}
		var err error
		if b, err = appendText(b, text); err != nil {
			return nil, fmt.Errorf("trace: write: line %d: field %q: %w", l.No, fd.name, err)
		}
	}
	return append(b, "}\n"...), nil
}

// appendText appends s as a JSON string.
func appendText(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%q is not UTF-8", clip(s))
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...), nil
}
