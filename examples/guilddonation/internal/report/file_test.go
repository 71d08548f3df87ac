package report_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
)

func encoded(t *testing.T, r *report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// only checks that dir holds the named files and nothing else, such as a temporary file left behind.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(names) {
		t.Errorf("%d files in the folder, want %q: %v", len(entries), names, entries)
	}
}

func TestWriteFile_NewAndOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	if err := os.WriteFile(path, bytes.Repeat([]byte("long old text"), 1000), 0o640); err != nil {
		t.Fatal(err)
	}
	before, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := report.WriteFile(path, small()); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, encoded(t, small())) {
		t.Errorf("the file holds %q", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("Stat = %v, %v; want the old permissions 0640", info.Mode(), err)
	}
	if old, err := io.ReadAll(before); err != nil || len(old) != 13000 {
		t.Errorf("a reader of the old file got %d bytes, %v; want all 13000 of the old text", len(old), err)
	}
	only(t, dir, "report.json")
}

func TestWriteFile_SymbolicLink(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	target, link := filepath.Join(elsewhere, "target.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteFile(link, small()); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("Lstat(link) = %v, %v; want it still a symbolic link", info, err)
	}
	if got, err := os.ReadFile(target); err != nil || !bytes.Equal(got, encoded(t, small())) {
		t.Errorf("the target holds %q, %v", got, err)
	}
	only(t, elsewhere, "target.json")
}

func TestWriteFile_Fails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"Folder": dir, "NoSuchFolder": filepath.Join(dir, "no", "report.json"), "FileAsFolder": filepath.Join(file, "report.json"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := report.CheckPath(path); err == nil {
				t.Errorf("CheckPath(%s) = nil", path)
			}
			if err := report.WriteFile(path, small()); err == nil {
				t.Errorf("WriteFile(%s) = nil", path)
			}
			only(t, dir, "file")
		})
	}
	for _, path := range []string{file, filepath.Join(dir, "new.json"), os.DevNull} {
		if err := report.CheckPath(path); err != nil {
			t.Errorf("CheckPath(%s) = %v", path, err)
		}
	}
}
