package testutil

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm/schema"

	"github.com/tenantdal/tenantdal/tenant"
)

// shadowCall is a method, with the ways in which it is called.
type shadowCall struct {
	name     string
	variants []shadowVariant
}

// shadowVariant is one way to call a method.
type shadowVariant struct {
	label string
	given []string // texts among the arguments
	// do makes the call. arguments holds what was passed, results what came back.
	do func(ctx context.Context) (arguments, results []reflect.Value)
}

// call makes a call and traces all that came of it. A panic is a result like any other.
func call(ctx context.Context, v shadowVariant, t *tracer) {
	defer func() {
		if p := recover(); p != nil {
			t.line("panic", fmt.Sprint(p))
		}
	}()
	arguments, results := v.do(ctx)
	for i, r := range results {
		t.walk(fmt.Sprintf("result %d", i+1), r, 0)
	}
	for i, a := range arguments {
		switch a.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map: // what a method may have filled
			t.walk(fmt.Sprintf("argument %d", i+1), a, 0)
		}
	}
}

var (
	contextType = reflect.TypeFor[context.Context]()
	clockType   = reflect.TypeFor[time.Time]()
	ownerType   = reflect.TypeFor[tenant.ID]()
)

// shadowCalls lists what is called, by name, and what is wrong with the lists.
func shadowCalls[R any](repository R, named map[string]func(context.Context, R) (any, error), skip map[string]string, w *shadowWorld) (calls []shadowCall, problems []string) {
	rv := reflect.ValueOf(&repository).Elem()
	if rv.Kind() == reflect.Interface {
		rv = rv.Elem()
	}
	known := map[string]bool{}
	if rv.IsValid() {
		for i := range rv.NumMethod() {
			name, m := rv.Type().Method(i).Name, rv.Method(i)
			if !takesContext(m.Type()) {
				continue
			}
			known[name] = true
			if named[name] != nil || skip[name] != "" {
				continue
			}
			c, why := generated(name, m, w)
			if why != "" {
				problems = append(problems, fmt.Sprintf("%s cannot be called: %s; give it arguments in Calls, or a reason in Skip", name, why))
				continue
			}
			calls = append(calls, c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(skip)) {
		switch {
		case !known[name]:
			problems = append(problems, fmt.Sprintf("Skip names %s, which is no method of %T that takes a context", name, repository))
		case skip[name] == "":
			problems = append(problems, fmt.Sprintf("Skip gives no reason for %s", name))
		case named[name] != nil:
			problems = append(problems, fmt.Sprintf("%s is in Calls and in Skip", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		f := named[name]
		calls = append(calls, shadowCall{name: name, variants: []shadowVariant{{do: func(ctx context.Context) (_, results []reflect.Value) {
			value, err := f(ctx, repository)
			return nil, []reflect.Value{reflect.ValueOf(&value).Elem(), reflect.ValueOf(&err).Elem()}
		}}}})
	}
	slices.SortFunc(calls, func(a, b shadowCall) int { return strings.Compare(a.name, b.name) })
	return calls, problems
}

func takesContext(t reflect.Type) bool {
	for i := range t.NumIn() {
		if t.In(i) == contextType {
			return true
		}
	}
	return false
}

// flavour is what made-up arguments hold.
type flavour struct {
	label string
	row   int  // integers and rows have the keys of this row
	texts bool // strings after the first hold the other tenant's texts
}

var flavours = []flavour{
	{label: " (with keys that both tenants have)", row: 1},
	{label: " (with a key that only the other tenant has)", row: canaryRow},
	{label: " (with the other tenant's texts)", row: 1, texts: true},
}

// generated makes the variants of a method, or says which argument cannot be made up.
func generated(name string, m reflect.Value, w *shadowWorld) (c shadowCall, why string) {
	c.name = name
	t := m.Type()
	for _, f := range flavours {
		if _, _, why = w.arguments(t, f); why != "" {
			return c, why
		}
		_, given, _ := w.arguments(t, f)
		c.variants = append(c.variants, shadowVariant{label: f.label, given: given, do: func(ctx context.Context) (_, results []reflect.Value) {
			arguments, _, _ := w.arguments(t, f) // fresh ones for each call
			for i := range arguments {
				if arguments[i].Type() == contextType {
					arguments[i] = reflect.ValueOf(&ctx).Elem()
				}
			}
			if t.IsVariadic() {
				return arguments, m.CallSlice(arguments)
			}
			return arguments, m.Call(arguments)
		}})
	}
	return c, ""
}

// arguments makes up what a method takes, and lists the texts in it.
func (w *shadowWorld) arguments(t reflect.Type, f flavour) (all []reflect.Value, given []string, why string) {
	m := maker{world: w, flavour: f}
	for i := range t.NumIn() {
		v, ok := m.value(t.In(i), nil, 4)
		if !ok {
			return nil, nil, fmt.Sprintf("its argument %d is a %s", i+1, t.In(i))
		}
		all = append(all, v)
	}
	return all, m.given, ""
}

// maker makes up values of one call.
type maker struct {
	world *shadowWorld
	flavour
	strings int      // how many were made
	given   []string // the texts and numbers that were made
}

// value makes up a value; of is the column that it is for, or nil.
func (m *maker) value(t reflect.Type, of *shadowColumn, depth int) (v reflect.Value, ok bool) {
	v = reflect.New(t).Elem()
	switch {
	case t == contextType || t == clockType:
		return v, true
	case depth == 0:
		return v, false
	case t == ownerType:
		v.SetString(string(shadowTenant))
		return v, true
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString(m.string(of))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n := m.integer(of); !v.OverflowInt(n) {
			v.SetInt(n)
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n := uint64(m.integer(of)); !v.OverflowUint(n) {
			v.SetUint(n)
		}
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		e, ok := m.value(t.Elem(), of, depth-1)
		if !ok {
			return v, false
		}
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(e)
	case reflect.Slice:
		return m.slice(v, t, of, depth)
	case reflect.Array:
		return v, true
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
	case reflect.Struct:
		return v, m.fill(v, depth)
	case reflect.Interface: // any holds a cursor or a value more often than not
		if t.NumMethod() > 0 {
			return v, false
		}
	default:
		return v, false
	}
	return v, true
}

func (m *maker) slice(v reflect.Value, t reflect.Type, of *shadowColumn, depth int) (reflect.Value, bool) {
	if t.Elem().Kind() == reflect.Interface {
		return v, true // of any: a cursor, or more arguments: none
	}
	if t.Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte(m.string(of)))
		return v, true
	}
	e, ok := m.value(t.Elem(), of, depth-1)
	if !ok {
		return v, false
	}
	v.Set(reflect.Append(v, e))
	return v, true
}

// string is the shard key; a text of the other tenant's where the flavour asks for it.
func (m *maker) string(of *shadowColumn) string {
	m.strings++
	s := m.world.key
	switch {
	case of != nil && of.shardKey:
	case m.texts && (m.strings > 1 || of != nil):
		s = m.world.canaryText(of)
	case of != nil && of.key:
		s = fmt.Sprint(of.own(m.row))
	case of != nil:
		s = "made up"
	}
	m.given = append(m.given, s)
	return s
}

func (m *maker) integer(of *shadowColumn) int64 {
	n := int64(m.row)
	switch {
	case of != nil && !of.key && !of.shardKey:
		n = 1
	case m.row == canaryRow:
		n = m.world.canaryKey(of)
	}
	m.given = append(m.given, fmt.Sprint(n))
	return n
}

// fill makes up a row: each field by its column, where the struct is a row of a declared table.
func (m *maker) fill(v reflect.Value, depth int) bool {
	if depth == 0 {
		return false
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct && f.IsExported() {
			if !m.fill(v.Field(i), depth-1) {
				return false
			}
			continue
		}
		if !f.IsExported() || related(f.Type) {
			continue
		}
		of := m.world.columnNamed(schema.ParseTagSetting(f.Tag.Get("gorm"), ";")["COLUMN"], f.Name)
		if of == nil {
			continue // the zero value: an option, a filter
		}
		if made, ok := m.value(f.Type, of, depth-1); ok {
			v.Field(i).Set(made)
		}
	}
	return true
}

var scannerType = reflect.TypeFor[sql.Scanner]()

// related reports a field that is left empty: other rows, and types that know their own zero.
func related(t reflect.Type) bool {
	if t == ownerType {
		return false
	}
	if t == clockType || t.Implements(scannerType) || reflect.PointerTo(t).Implements(scannerType) {
		return true
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map
}
