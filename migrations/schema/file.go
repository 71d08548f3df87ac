package schema

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantdal/tenantdal/dal"
)

// file is one step of a set in one dialect. It is immutable.
type file struct {
	version  int64
	name     string // "0001_hero.sql"
	checksum string // SHA-256 of its bytes, line ends made equal, in hexadecimal
	up, down *statement
}

// fileName is the shape of a file's name. goose skips what has no number, so a misspelt file would never run: it is refused.
var fileName = regexp.MustCompile(`^([0-9]{4,18})_[a-z0-9_]+\.sql$`)

// maxFileName is the largest length of a file's name in bytes.
const maxFileName = 255

// loadFiles reads and checks the files of one dialect, sorted by version. All faults come as one list.
func loadFiles(set Set, d dal.Dialect) ([]file, []error) {
	entries, err := fs.ReadDir(set.FS, string(d))
	if err != nil {
		return nil, []error{&LintError{Set: set.Name, File: string(d), Problem: "the folder cannot be read: " + err.Error(), Mend: "give each dialect a folder: sqlite and mysql, and postgres for clusters on PostgreSQL"}}
	}
	var files []file
	var errs []error
	for _, e := range entries {
		fail := func(problem, mend string) {
			errs = append(errs, &LintError{Set: set.Name, File: string(d) + "/" + e.Name(), Problem: problem, Mend: mend})
		}
		m := fileName.FindStringSubmatch(e.Name())
		if e.IsDir() || m == nil || len(e.Name()) > maxFileName {
			fail("its name is not NNNN_name.sql", "name it like 0001_hero.sql, in lower case, and keep nothing else in the folder")
			continue
		}
		version, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || version < 1 {
			fail("its number is not above 0", "count from 0001")
			continue
		}
		text, err := fs.ReadFile(set.FS, string(d)+"/"+e.Name())
		if err != nil {
			fail("it cannot be read: "+err.Error(), "make it readable")
			continue
		}
		f := file{version: version, name: e.Name(), checksum: checksum(text)}
		up, down, err := split(string(text))
		if err == nil {
			if f.up, err = parseStatement(d, up); err != nil {
				err = fmt.Errorf("going up: %w", err)
			} else if f.down, err = parseStatement(d, down); err != nil {
				err = fmt.Errorf("going down: %w", err)
			}
		}
		if err != nil {
			fail(err.Error(), "write one DDL statement below each of -- +goose Up and -- +goose Down")
			continue
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.version, b.version) })
	for i := 1; i < len(files); i++ {
		if files[i].version == files[i-1].version {
			errs = append(errs, &LintError{Set: set.Name, File: string(d) + "/" + files[i].name, Problem: "its number is that of " + files[i-1].name, Mend: "give it the next number"})
		}
	}
	if len(files) == 0 && len(errs) == 0 {
		errs = append(errs, &LintError{Set: set.Name, File: string(d), Problem: "the folder holds no files", Mend: "add a file, or leave the set out"})
	}
	return files, errs
}

// checksum is over the bytes of the file. A checkout with other line ends is the same file.
func checksum(text []byte) string {
	sum := sha256.Sum256(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
	return hex.EncodeToString(sum[:])
}

// split returns the one statement of each section of a goose file. It reads annotations as goose does and refuses what goose would read otherwise than a
// person: an environment variable in the text, several statements, a file without transaction.
func split(text string) (up, down string, err error) {
	sections := map[string][]string{} // statements by section
	section, block := "", false
	var buf strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "--") && strings.Contains(trimmed, "+goose") {
			note := strings.ToLower(strings.Join(strings.Fields(strings.TrimPrefix(trimmed, "--")), " "))
			switch {
			case line[0] == ' ' || line[0] == '\t':
				return "", "", fmt.Errorf("the annotation %q is indented", trimmed)
			case note == "+goose up" && section == "":
				section = "up"
			case note == "+goose down" && section == "up" && !block && buf.Len() == 0:
				section = "down"
			case note == "+goose statementbegin" && section != "" && !block && buf.Len() == 0:
				block = true
			case note == "+goose statementend" && block:
				sections[section] = append(sections[section], buf.String())
				buf.Reset()
				block = false
			default:
				return "", "", fmt.Errorf("the annotation %q is not allowed there", trimmed)
			}
			continue
		}
		if buf.Len() == 0 && (trimmed == "" || strings.HasPrefix(trimmed, "--")) {
			continue
		}
		if section == "" {
			return "", "", errors.New("text stands before -- +goose Up")
		}
		buf.WriteString(line)
		if !block && endsStatement(line) {
			sections[section] = append(sections[section], buf.String())
			buf.Reset()
		}
	}
	switch {
	case block || strings.TrimSpace(buf.String()) != "":
		return "", "", errors.New("its last statement does not end with a semicolon")
	case len(sections["up"]) != 1:
		return "", "", fmt.Errorf("it has %d statements going up", len(sections["up"]))
	case len(sections["down"]) != 1:
		return "", "", fmt.Errorf("it has %d statements going down", len(sections["down"]))
	}
	return sections["up"][0], sections["down"][0], nil
}

// endsStatement is goose's rule: the last word before a comment ends with a semicolon.
func endsStatement(line string) bool {
	last := ""
	for word := range strings.FieldsSeq(line) {
		if strings.HasPrefix(word, "--") {
			break
		}
		last = word
	}
	return strings.HasSuffix(last, ";")
}
