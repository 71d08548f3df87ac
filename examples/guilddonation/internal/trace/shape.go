package trace

// field is one field of a line.
type field struct {
	name string
	// text returns where the field's text is kept in a line; nil for qty, and for model, which has a type of its own.
	text func(*Line) *string
}

var (
	fieldID     = field{"id", func(l *Line) *string { return &l.Tenant }}
	fieldTenant = field{"tenant", func(l *Line) *string { return &l.Tenant }}
	fieldModel  = field{"model", nil}
	fieldGuild  = field{"guild", func(l *Line) *string { return &l.Guild }}
	fieldStatus = field{"status", func(l *Line) *string { return &l.Status }}
	fieldPlayer = field{"player", func(l *Line) *string { return &l.Player }}
	fieldItem   = field{"item", func(l *Line) *string { return &l.Item }}
	fieldKey    = field{"key", func(l *Line) *string { return &l.Key }}
	fieldQty    = field{"qty", nil}
)

// shapes holds the fields of each op beside "op" itself, in the order in which they are checked and written.
var shapes = map[Op][]field{
	OpTenant: {fieldID, fieldModel},
	OpGuild:  {fieldTenant, fieldGuild, fieldStatus},
	OpStock:  {fieldTenant, fieldGuild, fieldItem, fieldQty},
	OpGrant:  {fieldTenant, fieldPlayer, fieldItem, fieldQty},
	OpDonate: {fieldTenant, fieldKey, fieldPlayer, fieldGuild, fieldItem, fieldQty},
}
