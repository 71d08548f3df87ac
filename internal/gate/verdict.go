package gate

// Use is a declared table that a statement names.
type Use struct {
	Table *Table
	Write bool
}

// ShardValue is a shard key that an INSERT writes, or that a condition compares: the placeholder Arg, or Text when Arg is -1.
type ShardValue struct {
	Table *Table
	Arg   int
	Text  string
}

// Verdict is what is known of a text. It is immutable and shared by all who ask for the same text.
type Verdict struct {
	// Refusal says why the text may not leave; nil if it may, as it is or as Rewrite has it.
	Refusal *Refusal
	// Rewrite is the text with the tenant spliced in; nil when the text is bound as it is.
	Rewrite *Rewrite
	// Write reports INSERT, UPDATE and DELETE. Locks reports a SELECT that locks rows.
	Write, Locks bool
	// Tables lists every declared table, each as often as it is named.
	Tables []Use
	// Inserts is the table that an INSERT adds rows to; nil for any other statement.
	Inserts *Table
	// KeyColumn says that the shard keys of inserted rows come from a column of a SELECT: ShardValues does not list them.
	KeyColumn bool
	// Args is the number of values that the text takes.
	Args int
	// TenantArgs are the values, from 0, that must be the tenant's id as a string.
	TenantArgs []int
	// Bound are the values among TenantArgs whose condition binds a table.
	Bound []int
	// Names are texts in the statement that stand where the tenant's id belongs: each must be it.
	Names []string
	// ShardValues are the shard keys of inserted rows.
	ShardValues []ShardValue
	// KeyValues are what the conditions say that shard keys are, by = and IN. A condition under NOT is none, nor is one inside CASE or a call.
	KeyValues []ShardValue
}

// Rewrite is a statement with the tenant spliced into it.
type Rewrite struct {
	Text string
	// Args has one entry for each value that Text takes, in order: [TenantArg], or the position of the original value, from 0.
	Args []int
	// Verdict is the verdict of Text: bound, never to be rewritten again.
	Verdict *Verdict
}

// TenantArg stands for the tenant's id among [Rewrite.Args].
const TenantArg = -1

// Judge reads a tenant's statement. It does no I/O and keeps nothing; see [Gate] for one that remembers.
func (s *Schema) Judge(text string) *Verdict {
	v, edits, tokens := s.judge(text, false)
	if v.Refusal != nil || len(edits) == 0 {
		return v
	}
	r := rewrite(s.dialect, text, tokens, edits)
	again, more, _ := s.judge(r.Text, false)
	if again.Refusal != nil || len(more) > 0 {
		reason := "a shape that could not be verified after the tenant was put into it"
		if again.Refusal != nil {
			reason += ": " + again.Refusal.Reason
		}
		return &Verdict{Refusal: refuse(reason, "write tenant_id = @tenant where it belongs")}
	}
	r.Verdict = again
	v.Rewrite = r
	return v
}

// JudgeSystem reads a statement of a system scope: nothing is bound to a tenant, and every table must be declared. Which tables the scope opens is
// the caller's to compare with [Verdict.Tables].
func (s *Schema) JudgeSystem(text string) *Verdict {
	v, edits, _ := s.judge(text, true)
	if v.Refusal == nil && len(edits) > 0 {
		v = &Verdict{Refusal: refuse("@tenant under a system scope, which has none", "bind the value")}
	}
	return v
}

func (s *Schema) judge(text string, system bool) (*Verdict, []edit, []token) {
	tokens, r := scan(s.dialect, text)
	if r != nil {
		return &Verdict{Refusal: r}, nil, nil
	}
	st, r := parse(s.dialect, text, tokens)
	if r != nil {
		return &Verdict{Refusal: r}, nil, nil
	}
	j := &judge{s: s, text: text, tokens: tokens, system: system, v: &Verdict{}}
	if r := j.run(st); r != nil {
		return &Verdict{Refusal: r}, nil, nil
	}
	return j.v, j.edits, tokens
}
