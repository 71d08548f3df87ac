package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/options"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
)

// recordName is the file that says what a folder belongs to, secretName the key of the servers in it.
const (
	recordName = "guilddonation.json"
	secretName = "secret"
	lockName   = "guilddonation.lock"
)

// record is what a folder belongs to.
type record struct {
	Trace  string `json:"trace_sha256"`
	Shards string `json:"shards"`
}

// folder is where a run keeps its data, locked against a second run.
type folder struct {
	dir       string
	temporary bool
	lock      *os.File
}

// openFolder prepares the folder: a new temporary one, or the given one if it is empty or holds a run of the same trace and shards. Anything else is
// refused before a byte is written.
func openFolder(opts options.Options, tr *trace.Trace) (*folder, error) {
	if opts.Shards.Kind == options.URLs {
		return &folder{}, nil
	}
	if opts.Dir == "" {
		dir, err := os.MkdirTemp("", "guilddonation-")
		return &folder{dir: dir, temporary: true}, err
	}
	want := record{hash(tr), opts.Shards.String()}
	if err := belongs(opts.Dir, want); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, &options.UsageError{Flag: "dir", Reason: "cannot be made: " + reason(err)}
	}
	lock, err := lockFile(filepath.Join(opts.Dir, lockName))
	if err != nil {
		return nil, &options.UsageError{Flag: "dir", Reason: "another run is at work in it: " + reason(err)}
	}
	f := &folder{dir: opts.Dir, lock: lock}
	if err := belongs(opts.Dir, want); err != nil { // again, now that nobody else writes
		return nil, errors.Join(err, f.close())
	}
	data, err := json.Marshal(want)
	if err == nil {
		err = writeFile(filepath.Join(opts.Dir, recordName), append(data, '\n'))
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// belongs compares a folder with what a run needs. A folder that is missing or empty is anybody's.
func belongs(dir string, want record) error {
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &options.UsageError{Flag: "dir", Reason: "cannot be read: " + reason(err)}
		}
		for _, e := range entries {
			if e.Name() != lockName && !strings.HasPrefix(e.Name(), recordName) {
				return &options.UsageError{Flag: "dir", Reason: "it holds something else than a run of this program"}
			}
		}
		return nil
	case err != nil:
		return &options.UsageError{Flag: "dir", Reason: "cannot be read: " + reason(err)}
	}
	var have record
	if err := json.Unmarshal(data, &have); err != nil {
		return &options.UsageError{Flag: "dir", Reason: recordName + " in it cannot be read"}
	}
	switch {
	case have.Trace != want.Trace:
		return &options.UsageError{Flag: "dir", Reason: "it holds a run of another trace"}
	case have.Shards != want.Shards:
		return &options.UsageError{Flag: "dir", Reason: fmt.Sprintf("it holds a run on %s", have.Shards)}
	}
	return nil
}

// reason is the cause of an error of package os, without the path, which is a flag's value.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// secretIn returns the key of the servers in a folder, made on first use.
func secretIn(dir string) (string, error) {
	path := filepath.Join(dir, secretName)
	data, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(data)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var key [24]byte
	if _, err := rand.Read(key[:]); err != nil {
		return "", err
	}
	text := hex.EncodeToString(key[:])
	return text, writeFile(path, []byte(text+"\n"))
}

// writeFile writes a file as a whole or not at all.
func writeFile(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// close unlocks the folder, and removes a temporary one.
func (f *folder) close() error {
	var errs []error
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	if f.temporary {
		errs = append(errs, os.RemoveAll(f.dir))
	}
	return errors.Join(errs...)
}
