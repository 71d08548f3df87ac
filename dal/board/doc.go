// Package board keeps grouped leaderboards over the shards of a tenant.
//
// A board has a number of groups, which only [Board.Rebuild] changes. A player belongs to the group that the unseeded hash of its id names, and all rows of a group lie at one place:
// the owner of the shard key "<board>/<group>" in [Keyspace]. An update is one statement there.
//
// Every entry is stored. A read merges the first rows of an index in the board's own order, one statement a shard, so the top N costs N rows a shard
// however many players there are. Entries are ordered by score, the highest first, then by time, the earliest first, then by player in byte order: a
// total order.
//
// [Board.Global] reads a board that [Board.Refresh] or a [Refresher] has stored at its home shard, the owner of its name: one statement, and its age shown.
//
// [Board.RankApprox] bounds a rank by counts held in memory; [Board.Rank] and [Board.Around] count exactly.
//
// Declare [Tables] and the set "board" of package migrations/schema, then [Open] a board for the context's tenant.
package board
