package dal

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/tenantdal/tenantdal/tenant"
)

// cursorVersion is the format of a cursor.
const cursorVersion = 1

// cursor is a place in an order: values, and no shards, so that it holds after the topology has changed.
type cursor struct {
	Version  int       `json:"v"`
	Check    string    `json:"c"` // binds it to tenant, table and order
	Backward bool      `json:"b,omitempty"`
	Values   []*string `json:"k"` // nil for NULL
}

// Page returns the page that a cursor names, in the order of the query; an empty cursor names the first. Its size is the query's limit. A page costs each
// shard one row more than its size at most, however far it lies. Next and Prev are the cursors of the pages beside it: they name the values of a row, so
// they hold after the topology has changed, and when that row is deleted. They are opaque, and not secret: they show those values.
//
// The cursor is bound to tenant, table and order; another's is refused with [*CursorError] before anything is sent. The conditions are the caller's to
// repeat. Other errors are those of [Query.Find]; a query with an offset is refused.
func (q Query[T]) Page(ctx context.Context, at string) (ScatterResult[T], error) {
	switch {
	case q.err != nil:
		return ScatterResult[T]{}, q.err
	case q.offset != 0:
		return ScatterResult[T]{}, &ShapeError{Shape: "a page with an offset", Table: q.table.name, Hint: "pass the cursor of the page before"}
	case q.spec.Partial:
		return ScatterResult[T]{}, &ShapeError{Shape: "a page of some shards", Table: q.table.name, Hint: "rows of the failed shards would be skipped for good; use Find"}
	}
	columns, err := q.columns()
	if err != nil {
		return ScatterResult[T]{}, err
	}
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return ScatterResult[T]{}, err
	}
	check := checkOf(id, q.table, columns)
	var after []sortValue
	var c cursor
	if at != "" {
		if c, after, err = parseCursor(at, check, columns); err != nil {
			return ScatterResult[T]{}, err
		}
	}
	asked := slices.Clone(columns)
	if c.Backward {
		for i := range asked {
			asked[i].desc = !asked[i].desc
		}
	}
	result, err := q.fetch(ctx, asked, after, q.limit+1)
	if err != nil {
		return ScatterResult[T]{Report: result.Report}, err
	}
	more := len(result.Rows) > q.limit
	result.Rows = result.Rows[:min(q.limit, len(result.Rows))]
	if c.Backward {
		slices.Reverse(result.Rows)
	}
	if len(result.Rows) == 0 {
		return result, nil
	}
	if more || c.Backward {
		if result.Next, err = q.cursorAt(ctx, columns, check, result.Rows[len(result.Rows)-1], false); err != nil {
			return ScatterResult[T]{}, err
		}
	}
	if at != "" && (more || !c.Backward) {
		result.Prev, err = q.cursorAt(ctx, columns, check, result.Rows[0], true)
	}
	return result, err
}

// checkOf is what binds a cursor to a tenant, a table and an order. It is no secret: who makes one up reads rows of the own tenant.
func checkOf(id tenant.ID, t *table, columns []orderColumn) string {
	text := string(id) + "\x00" + t.name
	for _, c := range columns {
		text += fmt.Sprintf("\x00%s\x00%t\x00%d", c.field.DBName, c.desc, c.kind)
	}
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

func parseCursor(text, check string, columns []orderColumn) (c cursor, values []sortValue, err error) {
	bad := func(problem string) (cursor, []sortValue, error) {
		return cursor{}, nil, &CursorError{Problem: problem}
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return bad("it cannot be read")
	}
	switch {
	case c.Version != cursorVersion:
		return bad(fmt.Sprintf("it has version %d, this is %d", c.Version, cursorVersion))
	case c.Check != check || len(c.Values) != len(columns):
		return bad("it is of another tenant, table or order")
	}
	for i, k := range c.Values {
		v := sortValue{kind: columns[i].kind, null: k == nil}
		if k != nil {
			switch v.kind {
			case intSort:
				v.i, err = strconv.ParseInt(*k, 10, 64)
			case uintSort:
				v.u, err = strconv.ParseUint(*k, 10, 64)
			case timeSort:
				v.t, err = time.Parse(time.RFC3339Nano, *k)
				v.t = v.t.UTC()
			default:
				v.raw = *k != "" && (*k)[0] == 'b'
				if *k == "" {
					return bad("it cannot be read")
				}
				v.s, err = base64.RawURLEncoding.DecodeString((*k)[1:])
			}
			if err != nil {
				return bad("a value of it cannot be read")
			}
		}
		values = append(values, v)
	}
	return c, values, nil
}

// cursorAt returns the cursor of the page after a row, or of the one before it.
func (q Query[T]) cursorAt(ctx context.Context, columns []orderColumn, check string, row T, backward bool) (string, error) {
	values, err := sortValues(ctx, q.table.name, columns, reflect.ValueOf(&row).Elem())
	if err != nil {
		return "", err
	}
	c := cursor{Version: cursorVersion, Check: check, Backward: backward, Values: make([]*string, len(values))}
	for i, v := range values {
		var text string
		switch {
		case v.null:
			continue
		case v.kind == intSort:
			text = strconv.FormatInt(v.i, 10)
		case v.kind == uintSort:
			text = strconv.FormatUint(v.u, 10)
		case v.kind == timeSort:
			text = v.t.Format(time.RFC3339Nano)
		case v.raw:
			text = "b" + base64.RawURLEncoding.EncodeToString(v.s)
		default:
			text = "t" + base64.RawURLEncoding.EncodeToString(v.s)
		}
		c.Values[i] = &text
	}
	raw, err := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(raw), err
}
