package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// CheckPath says whether a report could be written to path, so that a run of an hour does not end with that news: the folder must exist and
// path must not be a folder itself. It creates nothing, and is no promise that [WriteFile] will succeed.
func CheckPath(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("report: %s is a folder", path)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("report: %w", err)
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("report: folder of %s: %w", path, err)
	}
	if !dir.IsDir() {
		return fmt.Errorf("report: %s is no folder", filepath.Dir(path))
	}
	return nil
}

// WriteFile writes the report to path, as [Report.Encode] does, in one step: whoever opens path sees the whole old file or the whole new one, also
// when the program is killed. A symbolic link is followed. A path that is no regular file, such as /dev/stdout or a named pipe, is written in place.
func WriteFile(path string, r *Report) error {
	var b bytes.Buffer
	if err := r.Encode(&b); err != nil {
		return err
	}
	if err := writeWhole(path, b.Bytes()); err != nil {
		return fmt.Errorf("report: write %s: %w", path, err)
	}
	return nil
}

func writeWhole(path string, data []byte) error {
	perm := fs.FileMode(0o666)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		// Renaming a file over a device would replace the device.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return writeClose(f, data, false)
	case err == nil:
		perm = info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := createBeside(path, perm)
	if err != nil {
		return err
	}
	if err = writeClose(f, data, true); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// createBeside creates an empty file with a fresh name in path's folder. Unlike os.CreateTemp it lets the process's umask decide on the permissions.
func createBeside(path string, perm fs.FileMode) (*os.File, error) {
	for tries := 0; ; tries++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".report-%016x.tmp", rand.Uint64()))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if errors.Is(err, fs.ErrExist) && tries < 100 {
			continue
		}
		return f, err
	}
}

// writeClose writes data and closes f. With sync the data is on disk before a rename can make it visible.
func writeClose(f *os.File, data []byte, sync bool) error {
	_, err := f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
