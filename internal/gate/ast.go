package gate

// ident is a name in the text.
type ident struct {
	name       string
	quoted     bool
	start, end int
}

// exprKind is what matters of an expression: how conditions are joined, what is compared with a placeholder, where a sub-select stands.
type exprKind uint8

const (
	exprOther  exprKind = iota // anything else; list holds its parts
	exprAnd                    // list joined by AND
	exprOr                     // list joined by OR
	exprEq                     // list[0] = list[1], and nothing else
	exprColumn                 // [qualifier.]name
	exprHole                   // a placeholder, or @tenant
	exprString                 // a text literal
	exprQuery                  // a sub-select
	exprRow                    // (a, b, ...)
	exprIn                     // list[0] IN list[1:]
	exprCall                   // name(list...)
)

type expr struct {
	kind       exprKind
	list       []*expr
	qualifier  ident // of a column; empty name for none
	column     ident
	call       string // of a call: the function's name in capitals
	hole       int    // index of the token
	text       string // of a literal
	query      *query
	negated    bool // of IN
	same       bool // list[0] <=> list[1], or IS: as = is, and true of two NULLs; nothing else
	noisy      bool // it computes something of a row, which may fail with an error; what it consists of may be noisy too
	start, end int
}

// query is a SELECT with everything around it: WITH, set operations, ORDER BY, LIMIT, locks.
type query struct {
	with  *with
	arms  []arm
	exprs []*expr // ORDER BY and LIMIT
	locks bool
}

// arm is one side of a set operation: a core, or a query in parentheses.
type arm struct {
	core  *core
	query *query
}

// core is SELECT ... FROM ... WHERE ... GROUP BY ... HAVING.
type core struct {
	items    []item
	itemsEnd int
	from     *source // nil for a SELECT without a table
	fromEnd  int     // where a WHERE may be inserted
	where    *expr
	exprs    []*expr // GROUP BY, HAVING, windows
	having   *expr   // of exprs
	folded   bool    // may give a row that no row of FROM stands behind: an aggregate without GROUP BY, or WITH ROLLUP
}

// item is an entry of the select list.
type item struct {
	star bool
	expr *expr
}

// with is a list of common table expressions.
type with struct {
	recursive bool
	ctes      []cte
}

type cte struct {
	name  ident
	query *query
}

// joinKind says which side's rows a join keeps without a match.
type joinKind uint8

const (
	joinInner joinKind = iota
	joinLeft
	joinRight
	joinFull
)

// source is a tree of what FROM names.
type source struct {
	// A leaf: a table or a derived table.
	table   *ident
	alias   ident // empty name for none
	plain   bool  // nothing but table and alias: no partition, no hint
	derived *query

	group *source // joins in parentheses

	// A join.
	left, right *source
	kind        joinKind
	on          *expr
	using       bool // USING or NATURAL: there is no ON to add to
	bare        bool // an inner join without ON outside parentheses (MySQL)
}

// verb is what a statement does.
type verb uint8

const (
	verbSelect verb = iota + 1
	verbInsert
	verbUpdate
	verbDelete
)

// assignment is column = value in SET.
type assignment struct {
	qualifier  ident
	column     ident
	value      *expr
	start, end int // of the value
}

// onConflict is ON CONFLICT or ON DUPLICATE KEY UPDATE.
type onConflict struct {
	duplicate bool // MySQL's form
	target    []ident
	targetAt  int // where a target column may be inserted; 0 without a target
	update    []assignment
	updateEnd int
	where     *expr
	exprs     []*expr
}

// statement is one statement.
type statement struct {
	verb  verb
	with  *with
	query *query // SELECT, and INSERT ... SELECT

	// INSERT, UPDATE, DELETE.
	target     ident // of INSERT, and of a single-table UPDATE or DELETE
	alias      ident
	columns    []ident // INSERT
	columnsEnd int     // where a column may be inserted
	rows       [][]*expr
	rowEnds    []int
	assigns    []assignment // UPDATE, INSERT ... SET
	setStart   int          // INSERT ... SET: where an assignment may be inserted
	source     *source      // UPDATE and DELETE: all that is joined, the target first for a single table
	targets    []ident      // DELETE of several tables: names or aliases
	where      *expr
	whereAt    int // where a WHERE may be inserted
	conflict   *onConflict
	exprs      []*expr // ORDER BY, LIMIT, RETURNING
	returning  bool
}
