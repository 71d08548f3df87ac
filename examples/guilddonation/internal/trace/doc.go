// Package trace reads, checks, writes and invents the input of guilddonation: one JSON object a line (NDJSON, UTF-8), each a tenant, a guild,
// a stock, a grant or a donation.
//
//	t, err := trace.ReadFile("donations.ndjson") // the whole file is checked before anything is returned
//	if err != nil {
//		return err // is ErrUnusable; names file, line and field
//	}
//	for _, line := range t.Setup {
//		// tenants, guilds, stock and grants, in order
//	}
//	for _, chain := range trace.Chains(t.Donations) {
//		// chains may run concurrently; the lines of one chain run one after the other
//	}
//	want := trace.Expect(t) // what the run must report
//
// # What is refused
//
// Each line is one flat JSON object with exactly the fields of its op, spelled exactly so:
//
//	tenant  id, model ("shared", "schema" or "database")
//	guild   tenant, guild, status ("open" or "closed")
//	stock   tenant, guild, item, qty
//	grant   tenant, player, item, qty
//	donate  tenant, key, player, guild, item, qty
//
// A wrong or missing field means that somebody meant something else, and a trace that is half understood must not move items. So beside malformed
// JSON these are errors too: unknown fields, fields given twice, text after the object, bytes that are not UTF-8 and lone surrogates (encoding/json
// would replace both by U+FFFD, and make two ids one), numbers that are written as anything but a whole number of 64 bits (1.0 and 1e3 included), blank
// lines (except at the end of the file), and lines longer than [MaxLineLen].
//
// The setup lines (all but donate) are applied in order, so a tenant is undeclared until its line has come. In them an undeclared or ill-formed
// tenant, a tenant declared twice, a guild declared again with another status, an empty id, "0" as a player or guild, a qty of 0 or less, and a cell
// (a player's or a guild's item) whose lines add up to more than 2^63-1 are errors. A guild may be declared again with the same status, and a guild
// that no line declares may have stock.
//
// In a donate line these are no errors but outcomes: the donation is rejected. Its tenant may be declared by any line, before it or after.
package trace
