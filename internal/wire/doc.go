// Package wire is the driver wrapper under every pool of the project: the last code that sees a statement before the server does.
//
//	connector := wire.NewConnector(inner, wire.Options{Shard: "s1"})
//	pool := sql.OpenDB(connector)
//	ctx = wire.With(ctx, &wire.Mark{Kind: wire.Scoped, Tenant: id, Text: text})
//	rows, err := pool.QueryContext(ctx, text, args...)
//
// A statement leaves only when its context carries a [Mark] for exactly that text. Marks are made by dal's callbacks once the tenant is in
// the statement, by the registered constants of this project ([Register]), and by the migrator; nothing outside this module can make one, so a
// pool reached through gorm's db.DB(), Connection() or database/sql fails closed with [ErrUnmarked].
//
// The wrapper also counts what it sends ([Stats]), poisons a transaction whose failed statement must not be committed over
// ([ErrPoisoned]), and ties a permit to the life of the connection that serves it: it is released when database/sql hands the connection back
// or closes it, never before.
package wire
