package trace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tenantdal/tenantdal/tenant"
)

// MaxLineLen is the largest length of a line in bytes, without its line feed.
const MaxLineLen = 1 << 20

// ReadFile reads and checks the trace in the named file, as [Read] does.
func ReadFile(name string) (*Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	defer f.Close() // read only: nothing to lose
	return Read(f, name)
}

// Read reads and checks a whole trace; name is what errors call it. The rules are those of the package's documentation.
//
// Every error is [ErrUnusable]. Mistakes in the trace come as [*LineErrors]: the first mistake of each faulty line, up to 20 lines. A trace
// without lines is a trace. Read keeps no more than one line beside what it returns.
func Read(r io.Reader, name string) (*Trace, error) {
	hash := sha256.New()
	lines := bufio.NewReaderSize(io.TeeReader(r, hash), MaxLineLen+1)
	t, check, wrong := new(Trace), newChecker(), new(LineErrors)
	fail := func(no int, f *fault) {
		wrong.Lines = append(wrong.Lines, &LineError{File: name, Line: no, Field: f.field, Reason: f.reason})
	}
	blank := 0 // number of the first line of the blank lines just read
	for no := 1; len(wrong.Lines) < maxErrors; no++ {
		text, long, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: read %s: %w", ErrUnusable, name, err)
		}
		if long {
			fail(no, &fault{"", fmt.Sprintf("longer than %d bytes", MaxLineLen)})
			continue
		}
		if len(bytes.Trim(text, " \t\r")) == 0 {
			if blank == 0 {
				blank = no
			}
			continue
		}
		if blank > 0 {
			fail(blank, &fault{"", "blank line before the end of the trace"})
			blank = 0
		}
		line, f := parseLine(text)
		line.No = no
		if wellFormed := f == nil; wellFormed || line.Op == OpTenant {
			// A tenant whose line is at fault elsewhere counts as declared, lest each of its lines be called a mistake.
			if meaning := check.line(&line); wellFormed {
				f = meaning
			}
		}
		if f != nil {
			fail(no, f)
			continue
		}
		switch line.Op {
		case OpDonate:
			t.Donations = append(t.Donations, line)
		case OpTenant:
			t.Tenants = append(t.Tenants, Tenant{tenant.ID(line.Tenant), line.Model})
			fallthrough
		default:
			t.Setup = append(t.Setup, line)
		}
	}
	if len(wrong.Lines) > 0 {
		_, err := lines.Peek(1)
		wrong.Cut = len(wrong.Lines) >= maxErrors && err == nil
		wrong.Lines = wrong.Lines[:min(len(wrong.Lines), maxErrors)] // a blank line and the line after it may both be at fault
		return nil, wrong
	}
	hash.Sum(t.SHA256[:0])
	return t, nil
}

// readLine returns the next line without its line feed; the bytes are valid until the next call. Of a line that is too long it returns nothing, and
// skips the rest. Text after the last line feed is a line; after it comes io.EOF.
func readLine(r *bufio.Reader) (text []byte, long bool, err error) {
	text, err = r.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = r.ReadSlice('\n')
	}
	switch {
	case err == nil && long, errors.Is(err, io.EOF) && long:
		return nil, true, nil
	case errors.Is(err, io.EOF) && len(text) > 0:
		return text, false, nil
	case err != nil:
		return nil, false, err
	}
	return text[:len(text)-1], false, nil
}
