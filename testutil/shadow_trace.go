package testutil

import (
	"database/sql"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
)

// canary is a value that only the other tenant's rows hold.
type canary struct {
	text  string // as it is found in texts
	where string // table, column and row
}

// tracer writes down values, one line each, and finds canaries in them.
type tracer struct {
	canaries []canary
	given    []string // what was passed as an argument may come back
	lines    []string
	leaks    []string
	seen     map[uintptr]bool
}

// tracedValues bounds what is read from one iterator, against those that never end.
const tracedValues = 10_000

// leaked returns the canary in a text, or nil.
func (t *tracer) leaked(s string) *canary {
next:
	for i, c := range t.canaries {
		if !strings.Contains(s, c.text) {
			continue
		}
		for _, g := range t.given {
			if strings.Contains(g, c.text) {
				continue next
			}
		}
		return &t.canaries[i]
	}
	return nil
}

// text looks for canaries in a text.
func (t *tracer) text(path, s string) {
	if c := t.leaked(s); c != nil {
		t.leaks = append(t.leaks, fmt.Sprintf("the canary %q (%s), in %s,", c.text, c.where, path))
	}
}

func (t *tracer) line(path, s string) {
	t.lines = append(t.lines, path+" = "+s)
	t.text(path, s)
}

// value writes down a value of a driver's.
func (t *tracer) value(path string, v any) { t.walk(path, reflect.ValueOf(v), 0) }

// maxDepth bounds how deep a result is looked into.
const maxDepth = 32

// opaque are types that are not looked into: pools and handles hold caches of their own.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[*sql.DB](): true, reflect.TypeFor[*sql.Tx](): true, reflect.TypeFor[*sql.Conn](): true, reflect.TypeFor[*sql.Stmt](): true,
	reflect.TypeFor[*gorm.DB](): true, reflect.TypeFor[*dal.Store](): true,
}

// walk writes down v and all that hangs on it, unexported fields included.
func (t *tracer) walk(path string, v reflect.Value, depth int) {
	if depth > maxDepth {
		return
	}
	if !v.IsValid() {
		t.line(path, "nil")
		return
	}
	if v.CanInterface() {
		switch x := v.Interface().(type) {
		case *sql.Rows:
			t.rows(path, x)
			return
		case time.Time:
			t.line(path, x.UTC().Format(time.RFC3339Nano))
			return
		case error:
			if v.Kind() != reflect.Pointer || !v.IsNil() {
				t.line(path, x.Error())
			}
		}
	}
	switch v.Kind() {
	case reflect.String:
		t.line(path, v.String())
	case reflect.Bool:
		t.line(path, strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		t.line(path, strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		t.line(path, strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		t.line(path, number(v.Float()))
	case reflect.Complex64, reflect.Complex128:
		t.line(path, fmt.Sprint(v.Complex()))
	case reflect.Pointer:
		t.pointer(path, v, depth)
	case reflect.Interface:
		t.walk(path, v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		t.list(path, v, depth)
	case reflect.Map:
		t.table(path, v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			t.walk(path+"."+v.Type().Field(i).Name, v.Field(i), depth+1)
		}
	case reflect.Func:
		t.iterator(path, v, depth)
	}
}

func (t *tracer) pointer(path string, v reflect.Value, depth int) {
	if v.IsNil() {
		t.line(path, "nil")
		return
	}
	if t.seen == nil {
		t.seen = map[uintptr]bool{}
	}
	if t.seen[v.Pointer()] {
		return
	}
	t.seen[v.Pointer()] = true
	defer delete(t.seen, v.Pointer())
	if opaque[v.Type()] {
		t.line(path, "a "+v.Type().String())
		return
	}
	t.walk(path, v.Elem(), depth+1)
}

func (t *tracer) list(path string, v reflect.Value, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
		t.line(path, string(v.Bytes()))
		return
	}
	t.line(path, fmt.Sprintf("%d elements", v.Len()))
	for i := range v.Len() {
		t.walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i), depth+1)
	}
}

// table walks a map in the order of its keys' texts.
func (t *tracer) table(path string, v reflect.Value, depth int) {
	t.line(path, fmt.Sprintf("%d entries", v.Len()))
	type entry struct{ lines, leaks []string }
	var all []entry
	for it := v.MapRange(); it.Next(); {
		sub := tracer{canaries: t.canaries, given: t.given, seen: t.seen}
		key := tracer{}
		key.walk("", it.Key(), 0)
		sub.walk(path+" key", it.Key(), depth+1)
		sub.walk(path+"["+strings.Join(key.lines, " ")+"]", it.Value(), depth+1)
		all = append(all, entry{sub.lines, sub.leaks})
	}
	slices.SortFunc(all, func(a, b entry) int { return slices.Compare(a.lines, b.lines) })
	for _, e := range all {
		t.lines, t.leaks = append(t.lines, e.lines...), append(t.leaks, e.leaks...)
	}
}

// iterator walks what an iter.Seq or iter.Seq2 yields.
func (t *tracer) iterator(path string, v reflect.Value, depth int) {
	n := 0
	switch {
	case v.IsNil() || !v.CanInterface():
	case v.Type().CanSeq():
		for x := range v.Seq() {
			t.walk(fmt.Sprintf("%s[%d]", path, n), x, depth+1)
			if n++; n == tracedValues {
				return
			}
		}
	case v.Type().CanSeq2():
		for x, y := range v.Seq2() {
			t.walk(fmt.Sprintf("%s[%d] first", path, n), x, depth+1)
			t.walk(fmt.Sprintf("%s[%d] second", path, n), y, depth+1)
			if n++; n == tracedValues {
				return
			}
		}
	}
}

func (t *tracer) rows(path string, rows *sql.Rows) {
	if rows == nil {
		return
	}
	n := 0
	if err := scanAll(rows, func(column string, v any) {
		t.value(fmt.Sprintf("%s, value %d, %s", path, n, column), v)
		n++
	}); err != nil {
		t.line(path, err.Error())
	}
}

// number writes a float as the integer that it is, so that a canary is found in it.
func number(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
