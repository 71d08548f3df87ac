package dal_test

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
)

// shown writes rows without their times, shard keys and empty fields.
func shown(v any) string {
	var b strings.Builder
	shownValue(&b, reflect.ValueOf(v))
	return b.String()
}

func shownValue(b *strings.Builder, v reflect.Value) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Slice:
		if raw, ok := v.Interface().([]byte); ok {
			b.Write(raw)
			return
		}
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(' ')
			}
			shownValue(b, v.Index(i))
		}
		b.WriteByte(']')
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		b.WriteByte('{')
		space := ""
		for _, k := range keys {
			if slices.Contains([]string{"created_at", "updated_at", "player_id"}, k.String()) {
				continue
			}
			b.WriteString(space + k.String() + ":")
			shownValue(b, v.MapIndex(k))
			space = " "
		}
		b.WriteByte('}')
	case reflect.Struct:
		shownStruct(b, v)
	default:
		fmt.Fprint(b, v.Interface())
	}
}

func shownStruct(b *strings.Builder, v reflect.Value) {
	b.WriteString(v.Type().Name() + "{")
	space := ""
	var fields func(v reflect.Value)
	fields = func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch x := v.Field(i).Interface().(type) {
			case time.Time, gorm.DeletedAt, sql.NullTime:
				continue
			default:
				if f.Name == "PlayerID" || reflect.ValueOf(x).IsValid() && reflect.ValueOf(x).IsZero() {
					continue
				}
			}
			if f.Anonymous {
				fields(v.Field(i))
				continue
			}
			b.WriteString(space + f.Name + ":")
			shownValue(b, v.Field(i))
			space = " "
		}
	}
	fields(v)
	b.WriteByte('}')
}

// find returns the rows of a query, shown.
func find[T any](q *gorm.DB) (any, error) {
	var rows []T
	err := q.Find(&rows).Error
	return shown(rows), err
}

// scan returns the rows of a query as maps, shown.
func scan(q *gorm.DB) (any, error) {
	rows := []map[string]any{}
	err := q.Scan(&rows).Error
	return shown(rows), err
}

// count returns the number of rows of a query.
func count(q *gorm.DB) (any, error) {
	var n int64
	err := q.Count(&n).Error
	return n, err
}

// pluck returns one column of a query.
func pluck[T any](q *gorm.DB, column string) (any, error) {
	var list []T
	err := q.Pluck(column, &list).Error
	return list, err
}

// changed returns how many rows a write changed.
func changed(res *gorm.DB) (any, error) { return fmt.Sprint(res.RowsAffected, " rows"), res.Error }

// each reads open rows with fn.
func each(rows *sql.Rows, err error, fn func() (any, error)) (any, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var list []any
	for rows.Next() {
		v, err := fn()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// total is a struct that no table is declared for.
type total struct {
	Name string
	Gold int64
	N    int64
}

// errAny is what a shape is refused with whose error has no name.
var errAny = anyError{}

type anyError struct{}

func (anyError) Error() string { return "any error" }
