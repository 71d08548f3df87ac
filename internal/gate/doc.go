// Package gate reads one SQL statement as its server reads it and says whether every reference to every tenant table in it is bound to the tenant.
//
//	s, err := gate.NewSchema(gate.MySQL, "tenant_id", tables...)
//	v := s.Judge("SELECT * FROM items WHERE id = ?")
//	v.Refusal           // why it may not leave, or nil
//	v.Rewrite           // the text with the predicate spliced in, when it was missing
//	v.TenantArgs        // the placeholders that must be the tenant's value
//
// The way of a text: tokens (by dialect) -> tree -> judgement -> rewrite -> judgement of the rewritten text. What the grammar does not know is refused:
// a parser that is too strict refuses a statement, one that is too lax leaks a row.
//
// Nothing here talks to a database. [Gate] keeps verdicts by text, bounded, and is safe for concurrent use.
package gate
