package gate_test

import (
	"slices"
	"testing"

	"github.com/tenantdal/tenantdal/internal/gate"
)

// shapes are texts that pass: as they are when want is empty, else rewritten to want with the values of args (t is the tenant's, 0 the first of the
// original ones). Texts have ? and `names`; PostgreSQL gets $1 and "names".
var shapes = []struct {
	name, dialects, text, want, args string
}{
	// One table.
	{"Select", "msp", "SELECT id FROM items", "SELECT id FROM items WHERE items.tenant_id = ?", "t"},
	{"SelectScoped", "msp", "SELECT id FROM items WHERE tenant_id = ? AND id = ?", "", ""},
	{"SelectScopedBehind", "msp", "SELECT id FROM items WHERE id = ? AND items.tenant_id = ?", "", ""},
	{"SelectScopedReversed", "msp", "SELECT id FROM items WHERE ? = tenant_id", "", ""},
	{"SelectScopedNested", "msp", "SELECT id FROM items WHERE ((id = ?) AND ((tenant_id = ?) AND gold > 1))", "", ""},
	{"SelectQuoted", "msp", "SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND `items`.`id` = ? ORDER BY `items`.`id` LIMIT ?", "", ""},
	{"SelectWhere", "msp", "SELECT id FROM items WHERE id = ? OR id = ?", "SELECT id FROM items WHERE items.tenant_id = ? AND (id = ? OR id = ?)", "t 0 1"},
	{"SelectAlias", "msp", "SELECT i.id FROM items AS i WHERE i.id = ?", "SELECT i.id FROM items AS i WHERE i.tenant_id = ? AND (i.id = ?)", "t 0"},
	{"SelectQuotedAlias", "msp", "SELECT * FROM `items` `I` LIMIT 1", "SELECT * FROM `items` `I` WHERE `I`.tenant_id = ? LIMIT 1", "t"},
	{"SelectOr", "msp", "SELECT id FROM items WHERE tenant_id = ? OR 1 = 1", "SELECT id FROM items WHERE items.tenant_id = ? AND (tenant_id = ? OR 1 = 1)", "t 0"},
	{"SelectNot", "msp", "SELECT id FROM items WHERE NOT tenant_id = ? AND id = 1", "SELECT id FROM items WHERE items.tenant_id = ? AND (NOT tenant_id = ? AND id = 1)", "t 0"},
	{"SelectPipes", "m", "SELECT id FROM items WHERE tenant_id = ? || 1", "SELECT id FROM items WHERE items.tenant_id = ? AND (tenant_id = ? || 1)", "t 0"},
	{"SelectPipes", "sp", "SELECT id FROM items WHERE tenant_id = ? || 'x'", "SELECT id FROM items WHERE items.tenant_id = ? AND (tenant_id = ? || 'x')", "t 0"},
	{"SelectXor", "m", "SELECT id FROM items WHERE tenant_id = ? XOR 1", "SELECT id FROM items WHERE items.tenant_id = ? AND (tenant_id = ? XOR 1)", "t 0"},
	{"SelectAmpersands", "m", "SELECT id FROM items WHERE tenant_id = ? && id = 1", "", ""},
	{"SelectChain", "ms", "SELECT id FROM items WHERE tenant_id = ? = 0", "SELECT id FROM items WHERE items.tenant_id = ? AND (tenant_id = ? = 0)", "t 0"},
	{"SelectIsNot", "ms", "SELECT id FROM items WHERE (tenant_id = ?) IS NOT TRUE", "SELECT id FROM items WHERE items.tenant_id = ? AND ((tenant_id = ?) IS NOT TRUE)", "t 0"},
	{"SelectIn", "msp", "SELECT id FROM items WHERE tenant_id IN (?)", "SELECT id FROM items WHERE items.tenant_id = ? AND (tenant_id IN (?))", "t 0"},
	{"SelectText", "msp", "SELECT id FROM items WHERE tenant_id = 'acme'", "SELECT id FROM items WHERE items.tenant_id = ? AND (tenant_id = 'acme')", "t"},
	{"SelectSelf", "msp", "SELECT id FROM items WHERE tenant_id = tenant_id", "SELECT id FROM items WHERE items.tenant_id = ? AND (tenant_id = tenant_id)", "t"},
	{"SelectBetween", "msp", "SELECT id FROM items WHERE id BETWEEN ? AND ? AND tenant_id = ?", "", ""},
	{"SelectBetweenTenant", "ms", "SELECT id FROM items WHERE id BETWEEN 1 AND tenant_id = ?", "SELECT id FROM items WHERE items.tenant_id = ? AND (id BETWEEN 1 AND tenant_id = ?)", "t 0"},
	{"SelectTenantName", "msp", "SELECT id FROM items WHERE tenant_id = @tenant", "SELECT id FROM items WHERE tenant_id = ?", "t"},
	{"SelectGroup", "msp", "SELECT name, COUNT(*) AS n FROM items GROUP BY name HAVING COUNT(*) > ? ORDER BY n DESC LIMIT ? OFFSET ?", "SELECT name, COUNT(*) AS n FROM items WHERE items.tenant_id = ? GROUP BY name HAVING COUNT(*) > ? ORDER BY n DESC LIMIT ? OFFSET ?", "t 0 1 2"},
	{"SelectDistinct", "msp", "SELECT DISTINCT name FROM items", "SELECT DISTINCT name FROM items WHERE items.tenant_id = ?", "t"},
	{"SelectHaving", "msp", "SELECT MAX(gold) FROM items HAVING MAX(tenant_id) = ?", "SELECT MAX(gold) FROM items WHERE items.tenant_id = ? HAVING MAX(tenant_id) = ?", "t 0"},
	{"SelectCase", "msp", "SELECT CASE WHEN gold > ? THEN 'rich' ELSE name END FROM items WHERE tenant_id = ?", "", ""},
	{"SelectStar", "msp", "SELECT items.* FROM items", "SELECT items.* FROM items WHERE items.tenant_id = ?", "t"},
	{"SelectLayout", "msp", "SELECT\n\tid\nFROM\titems\r\n", "SELECT\n\tid\nFROM\titems WHERE items.tenant_id = ?\r\n", "t"},
	{"SelectNoTable", "msp", "SELECT 1 + ?", "", ""},
	{"SelectNoTableTenant", "msp", "SELECT @tenant, ?", "SELECT ?, ?", "t 0"},
	{"SelectGlobal", "msp", "SELECT gold FROM catalog WHERE name = ?", "", ""},
	{"SelectLimitComma", "ms", "SELECT id FROM items LIMIT ?, ?", "SELECT id FROM items WHERE items.tenant_id = ? LIMIT ?, ?", "t 0 1"},
	{"SelectRollup", "m", "SELECT name, SUM(gold) FROM items GROUP BY name WITH ROLLUP", "SELECT name, SUM(gold) FROM items WHERE items.tenant_id = ? GROUP BY name WITH ROLLUP", "t"},
	{"SelectDistinctOn", "p", "SELECT DISTINCT ON (name) name, gold FROM items ORDER BY name, gold DESC NULLS LAST", "SELECT DISTINCT ON (name) name, gold FROM items WHERE items.tenant_id = ? ORDER BY name, gold DESC NULLS LAST", "t"},
	{"SelectCast", "p", "SELECT gold::text FROM items WHERE name = ?::text", "SELECT gold::text FROM items WHERE items.tenant_id = ? AND (name = ?::text)", "t 0"},
	{"SelectBrackets", "s", "SELECT [id] FROM [items] WHERE [tenant_id] == ?", "", ""},
	{"SelectBracketsAlias", "s", "SELECT x.id FROM [items] AS [x]", "SELECT x.id FROM [items] AS [x] WHERE [x].tenant_id = ?", "t"},
	{"SelectQuotes", "m", `SELECT id FROM items WHERE name = 'it''s \' OR 1=1' AND name <> "x"`, `SELECT id FROM items WHERE items.tenant_id = ? AND (name = 'it''s \' OR 1=1' AND name <> "x")`, "t"},
	{"SelectQuotes", "sp", `SELECT id FROM items WHERE name = 'it''s \'`, `SELECT id FROM items WHERE items.tenant_id = ? AND (name = 'it''s \')`, "t"},
	{"SelectDecoy", "msp", "SELECT id FROM items WHERE name = 'WHERE tenant_id = ' AND id = ?", "SELECT id FROM items WHERE items.tenant_id = ? AND (name = 'WHERE tenant_id = ' AND id = ?)", "t 0"},

	// Joins.
	{"JoinInner", "msp", "SELECT i.id FROM items i JOIN players p ON p.id = i.player_id WHERE i.gold > ?", "SELECT i.id FROM items i JOIN players p ON p.id = i.player_id WHERE i.tenant_id = ? AND p.tenant_id = ? AND (i.gold > ?)", "t t 0"},
	{"JoinInnerHalf", "msp", "SELECT i.id FROM items i INNER JOIN players p ON p.id = i.player_id AND p.tenant_id = ?", "SELECT i.id FROM items i INNER JOIN players p ON p.id = i.player_id AND p.tenant_id = ? WHERE i.tenant_id = ?", "0 t"},
	{"JoinInnerOn", "msp", "SELECT i.id FROM items i JOIN players p ON p.tenant_id = ? AND i.tenant_id = ?", "", ""},
	{"JoinInnerOnOr", "msp", "SELECT i.id FROM items i JOIN players p ON p.tenant_id = ? OR p.tenant_id = ? WHERE i.tenant_id = ?", "SELECT i.id FROM items i JOIN players p ON p.tenant_id = ? OR p.tenant_id = ? WHERE p.tenant_id = ? AND (i.tenant_id = ?)", "0 1 t 2"},
	{"JoinTenants", "msp", "SELECT i.id FROM items i JOIN players p ON p.tenant_id = i.tenant_id WHERE i.tenant_id = ?", "SELECT i.id FROM items i JOIN players p ON p.tenant_id = i.tenant_id WHERE p.tenant_id = ? AND (i.tenant_id = ?)", "t 0"},
	{"JoinUnqualified", "msp", "SELECT 1 FROM items i JOIN catalog c ON c.name = i.name WHERE tenant_id = ?", "SELECT 1 FROM items i JOIN catalog c ON c.name = i.name WHERE i.tenant_id = ? AND (tenant_id = ?)", "t 0"},
	{"JoinLeft", "msp", "SELECT i.id FROM items i LEFT JOIN players p ON p.id = i.player_id", "SELECT i.id FROM items i LEFT JOIN players p ON p.tenant_id = ? AND (p.id = i.player_id) WHERE i.tenant_id = ?", "t t"},
	{"JoinLeftWrongSide", "msp", "SELECT i.id FROM items i LEFT JOIN players p ON p.id = i.player_id AND i.tenant_id = ?", "SELECT i.id FROM items i LEFT JOIN players p ON p.tenant_id = ? AND (p.id = i.player_id AND i.tenant_id = ?) WHERE i.tenant_id = ?", "t 0 t"},
	{"JoinLeftBound", "msp", "SELECT i.id FROM items i LEFT OUTER JOIN players p ON p.id = i.player_id AND p.tenant_id = ? WHERE i.tenant_id = ?", "", ""},
	{"JoinLeftBoundByWhere", "msp", "SELECT i.id FROM items i LEFT JOIN players p ON p.id = i.player_id WHERE i.tenant_id = ? AND p.tenant_id = ?", "", ""},
	{"JoinRight", "msp", "SELECT p.id FROM items i RIGHT JOIN players p ON p.id = i.player_id", "SELECT p.id FROM items i RIGHT JOIN players p ON i.tenant_id = ? AND (p.id = i.player_id) WHERE p.tenant_id = ?", "t t"},
	{"JoinRightChain", "msp", "SELECT p.id FROM items i JOIN items j ON j.id = i.id RIGHT JOIN players p ON p.id = i.player_id", "SELECT p.id FROM items i JOIN items j ON j.id = i.id RIGHT JOIN players p ON i.tenant_id = ? AND j.tenant_id = ? AND (p.id = i.player_id) WHERE p.tenant_id = ?", "t t t"},
	{"JoinFullBound", "sp", "SELECT 1 FROM items i FULL OUTER JOIN players p ON p.id = i.player_id WHERE i.tenant_id = ? AND p.tenant_id = ?", "", ""},
	{"JoinFullDerived", "sp", "SELECT 1 FROM (SELECT id FROM items) i FULL JOIN (SELECT id FROM players) p ON p.id = i.id", "SELECT 1 FROM (SELECT id FROM items WHERE items.tenant_id = ?) i FULL JOIN (SELECT id FROM players WHERE players.tenant_id = ?) p ON p.id = i.id", "t t"},
	{"JoinFull", "sp", "SELECT 1 FROM items i FULL JOIN players AS p ON p.id = i.id WHERE i.id > ?", "SELECT 1 FROM (SELECT * FROM items WHERE items.tenant_id = ?) i FULL JOIN (SELECT * FROM players WHERE players.tenant_id = ?) AS p ON p.id = i.id WHERE i.id > ?", "t t 0"},
	{"JoinLeftUsing", "msp", "SELECT 1 FROM items LEFT JOIN `players` USING (id)", "SELECT 1 FROM items LEFT JOIN (SELECT * FROM `players` WHERE `players`.tenant_id = ?) `players` USING (id) WHERE items.tenant_id = ?", "t t"},
	{"JoinRightUsing", "msp", "SELECT 1 FROM items i JOIN bags b ON b.id = i.id RIGHT JOIN players p USING (player_id)", "SELECT 1 FROM (SELECT * FROM items WHERE items.tenant_id = ?) i JOIN (SELECT * FROM bags WHERE bags.tenant_id = ?) b ON b.id = i.id RIGHT JOIN players p USING (player_id) WHERE p.tenant_id = ?", "t t t"},
	{"JoinNaturalLeft", "msp", "SELECT 1 FROM items NATURAL LEFT JOIN players p WHERE p.id = ?", "SELECT 1 FROM items NATURAL LEFT JOIN (SELECT * FROM players WHERE players.tenant_id = ?) p WHERE items.tenant_id = ? AND (p.id = ?)", "t t 0"},
	{"JoinLeftUsingBound", "msp", "SELECT 1 FROM items i LEFT JOIN players p USING (id) WHERE i.tenant_id = ? AND p.tenant_id = ?", "", ""},
	{"JoinComma", "msp", "SELECT 1 FROM items i, players p WHERE p.id = i.player_id", "SELECT 1 FROM items i, players p WHERE i.tenant_id = ? AND p.tenant_id = ? AND (p.id = i.player_id)", "t t"},
	{"JoinCommaLeft", "msp", "SELECT 1 FROM catalog c, items i LEFT JOIN players p ON p.id = i.player_id", "SELECT 1 FROM catalog c, items i LEFT JOIN players p ON p.tenant_id = ? AND (p.id = i.player_id) WHERE i.tenant_id = ?", "t t"},
	{"JoinCommaRight", "m", "SELECT 1 FROM items i, items j RIGHT JOIN players p ON p.id = j.player_id", "SELECT 1 FROM items i, items j RIGHT JOIN players p ON j.tenant_id = ? AND (p.id = j.player_id) WHERE i.tenant_id = ? AND p.tenant_id = ?", "t t t"},
	{"JoinCommaRight", "s", "SELECT 1 FROM items i, items j RIGHT JOIN players p ON p.id = j.player_id", "SELECT 1 FROM items i, items j RIGHT JOIN players p ON i.tenant_id = ? AND j.tenant_id = ? AND (p.id = j.player_id) WHERE p.tenant_id = ?", "t t t"},
	{"JoinStraight", "m", "SELECT STRAIGHT_JOIN i.id FROM items i STRAIGHT_JOIN players p ON p.id = i.player_id", "SELECT STRAIGHT_JOIN i.id FROM items i STRAIGHT_JOIN players p ON p.id = i.player_id WHERE i.tenant_id = ? AND p.tenant_id = ?", "t t"},
	{"JoinCross", "msp", "SELECT 1 FROM items i CROSS JOIN catalog c", "SELECT 1 FROM items i CROSS JOIN catalog c WHERE i.tenant_id = ?", "t"},
	{"JoinSelf", "msp", "SELECT a.id FROM items a JOIN items b ON b.id = a.id", "SELECT a.id FROM items a JOIN items b ON b.id = a.id WHERE a.tenant_id = ? AND b.tenant_id = ?", "t t"},
	{"JoinUsing", "msp", "SELECT 1 FROM items JOIN players USING (tenant_id, player_id)", "SELECT 1 FROM items JOIN players USING (tenant_id, player_id) WHERE items.tenant_id = ? AND players.tenant_id = ?", "t t"},
	{"JoinNatural", "msp", "SELECT 1 FROM items NATURAL JOIN players", "SELECT 1 FROM items NATURAL JOIN players WHERE items.tenant_id = ? AND players.tenant_id = ?", "t t"},
	{"JoinGroup", "msp", "SELECT 1 FROM items i LEFT JOIN (players p JOIN bags b ON b.player_id = p.player_id) ON p.player_id = i.player_id", "SELECT 1 FROM items i LEFT JOIN (players p JOIN bags b ON b.player_id = p.player_id) ON p.tenant_id = ? AND b.tenant_id = ? AND (p.player_id = i.player_id) WHERE i.tenant_id = ?", "t t t"},
	{"JoinGroupOuter", "msp", "SELECT 1 FROM (items i LEFT JOIN players p ON p.id = i.id) JOIN catalog c ON c.name = i.name", "SELECT 1 FROM (items i LEFT JOIN players p ON p.tenant_id = ? AND (p.id = i.id)) JOIN catalog c ON c.name = i.name WHERE i.tenant_id = ?", "t t"},
	{"JoinThree", "msp", "SELECT 1 FROM items a LEFT JOIN items b ON b.id = a.id LEFT JOIN items c ON c.id = b.id AND c.tenant_id = ? WHERE a.id = ?", "SELECT 1 FROM items a LEFT JOIN items b ON b.tenant_id = ? AND (b.id = a.id) LEFT JOIN items c ON c.id = b.id AND c.tenant_id = ? WHERE a.tenant_id = ? AND (a.id = ?)", "t 0 t 1"},
	{"JoinSubselectInOn", "msp", "SELECT 1 FROM catalog c LEFT JOIN catalog d ON d.gold = (SELECT MAX(gold) FROM items)", "SELECT 1 FROM catalog c LEFT JOIN catalog d ON d.gold = (SELECT MAX(gold) FROM items WHERE items.tenant_id = ?)", "t"},

	// Derived tables, common table expressions, set operations, sub-selects.
	{"Derived", "msp", "SELECT d.n FROM (SELECT name AS n FROM items WHERE gold > ?) AS d WHERE d.n <> ?", "SELECT d.n FROM (SELECT name AS n FROM items WHERE items.tenant_id = ? AND (gold > ?)) AS d WHERE d.n <> ?", "t 0 1"},
	{"DerivedColumns", "mp", "SELECT d.a FROM (SELECT name FROM items) AS d (a)", "SELECT d.a FROM (SELECT name FROM items WHERE items.tenant_id = ?) AS d (a)", "t"},
	{"DerivedTenantColumn", "msp", "SELECT 1 FROM (SELECT ? AS tenant_id) d JOIN items i ON d.tenant_id = ?", "SELECT 1 FROM (SELECT ? AS tenant_id) d JOIN items i ON d.tenant_id = ? WHERE i.tenant_id = ?", "0 1 t"},
	{"DerivedParentheses", "mp", "SELECT 1 FROM ((SELECT id FROM items) UNION (SELECT id FROM players)) d", "SELECT 1 FROM ((SELECT id FROM items WHERE items.tenant_id = ?) UNION (SELECT id FROM players WHERE players.tenant_id = ?)) d", "t t"},
	{"With", "msp", "WITH rich AS (SELECT id FROM items WHERE gold > ?) SELECT r.id FROM rich r JOIN players p ON p.id = r.id", "WITH rich AS (SELECT id FROM items WHERE items.tenant_id = ? AND (gold > ?)) SELECT r.id FROM rich r JOIN players p ON p.id = r.id WHERE p.tenant_id = ?", "t 0 t"},
	{"WithTwo", "msp", "WITH a AS (SELECT id FROM items), b AS (SELECT id FROM a) SELECT id FROM b", "WITH a AS (SELECT id FROM items WHERE items.tenant_id = ?), b AS (SELECT id FROM a) SELECT id FROM b", "t"},
	{"WithRecursive", "msp", "WITH RECURSIVE up (id, player_id) AS (SELECT id, player_id FROM players WHERE id = ? UNION ALL SELECT p.id, p.player_id FROM players p JOIN up ON p.id = up.player_id) SELECT id FROM up", "WITH RECURSIVE up (id, player_id) AS (SELECT id, player_id FROM players WHERE players.tenant_id = ? AND (id = ?) UNION ALL SELECT p.id, p.player_id FROM players p JOIN up ON p.id = up.player_id WHERE p.tenant_id = ?) SELECT id FROM up", "t 0 t"},
	{"WithMaterialized", "sp", "WITH a AS NOT MATERIALIZED (SELECT id FROM items) SELECT id FROM a", "WITH a AS NOT MATERIALIZED (SELECT id FROM items WHERE items.tenant_id = ?) SELECT id FROM a", "t"},
	{"WithInner", "msp", "SELECT 1 FROM catalog WHERE gold IN (WITH a AS (SELECT gold FROM items) SELECT gold FROM a)", "SELECT 1 FROM catalog WHERE gold IN (WITH a AS (SELECT gold FROM items WHERE items.tenant_id = ?) SELECT gold FROM a)", "t"},
	{"Union", "msp", "SELECT id FROM items UNION ALL SELECT id FROM players WHERE id = ? ORDER BY id LIMIT 5", "SELECT id FROM items WHERE items.tenant_id = ? UNION ALL SELECT id FROM players WHERE players.tenant_id = ? AND (id = ?) ORDER BY id LIMIT 5", "t t 0"},
	{"UnionHalf", "msp", "SELECT id FROM items WHERE tenant_id = ? UNION SELECT id FROM players", "SELECT id FROM items WHERE tenant_id = ? UNION SELECT id FROM players WHERE players.tenant_id = ?", "0 t"},
	{"UnionParentheses", "mp", "(SELECT id FROM items LIMIT 1) UNION (SELECT id FROM players) LIMIT ?", "(SELECT id FROM items WHERE items.tenant_id = ? LIMIT 1) UNION (SELECT id FROM players WHERE players.tenant_id = ?) LIMIT ?", "t t 0"},
	{"Intersect", "msp", "SELECT id FROM items INTERSECT SELECT id FROM players", "SELECT id FROM items WHERE items.tenant_id = ? INTERSECT SELECT id FROM players WHERE players.tenant_id = ?", "t t"},
	{"Except", "msp", "SELECT id FROM items EXCEPT SELECT id FROM players", "SELECT id FROM items WHERE items.tenant_id = ? EXCEPT SELECT id FROM players WHERE players.tenant_id = ?", "t t"},
	{"SubselectList", "msp", "SELECT (SELECT MAX(gold) FROM items) AS m, c.name FROM catalog c", "SELECT (SELECT MAX(gold) FROM items WHERE items.tenant_id = ?) AS m, c.name FROM catalog c", "t"},
	{"SubselectIn", "msp", "SELECT id FROM players WHERE tenant_id = ? AND id IN (SELECT player_id FROM items WHERE gold > ?)", "SELECT id FROM players WHERE tenant_id = ? AND id IN (SELECT player_id FROM items WHERE items.tenant_id = ? AND (gold > ?))", "0 t 1"},
	{"SubselectNotIn", "msp", "SELECT id FROM players WHERE id NOT IN (SELECT player_id FROM items)", "SELECT id FROM players WHERE players.tenant_id = ? AND (id NOT IN (SELECT player_id FROM items WHERE items.tenant_id = ?))", "t t"},
	{"SubselectExists", "msp", "SELECT name FROM catalog c WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.name = c.name)", "SELECT name FROM catalog c WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.tenant_id = ? AND (i.name = c.name))", "t"},
	{"SubselectAny", "mp", "SELECT name FROM catalog WHERE gold > ANY (SELECT gold FROM items)", "SELECT name FROM catalog WHERE gold > ANY (SELECT gold FROM items WHERE items.tenant_id = ?)", "t"},
	{"SubselectOrder", "msp", "SELECT name FROM catalog ORDER BY (SELECT MAX(gold) FROM items) DESC", "SELECT name FROM catalog ORDER BY (SELECT MAX(gold) FROM items WHERE items.tenant_id = ?) DESC", "t"},
	{"SubselectHaving", "msp", "SELECT name FROM catalog GROUP BY name HAVING MAX(gold) > (SELECT MAX(gold) FROM items)", "SELECT name FROM catalog GROUP BY name HAVING MAX(gold) > (SELECT MAX(gold) FROM items WHERE items.tenant_id = ?)", "t"},
	{"SubselectLimit", "sp", "SELECT name FROM catalog LIMIT (SELECT COUNT(*) FROM items)", "SELECT name FROM catalog LIMIT (SELECT COUNT(*) FROM items WHERE items.tenant_id = ?)", "t"},
	{"SubselectArgument", "msp", "SELECT COALESCE((SELECT MAX(gold) FROM items), 0)", "SELECT COALESCE((SELECT MAX(gold) FROM items WHERE items.tenant_id = ?), 0)", "t"},
	{"SubselectCase", "msp", "SELECT CASE WHEN EXISTS (SELECT 1 FROM items) THEN 1 ELSE 0 END", "SELECT CASE WHEN EXISTS (SELECT 1 FROM items WHERE items.tenant_id = ?) THEN 1 ELSE 0 END", "t"},
	{"SubselectPlus", "msp", "SELECT ((SELECT MAX(gold) FROM items) + 1)", "SELECT ((SELECT MAX(gold) FROM items WHERE items.tenant_id = ?) + 1)", "t"},
	{"SubselectCorrelated", "msp", "SELECT (SELECT MAX(j.gold) FROM items j WHERE j.id = i.id AND i.tenant_id = ?) FROM items i WHERE i.tenant_id = ?", "SELECT (SELECT MAX(j.gold) FROM items j WHERE j.tenant_id = ? AND (j.id = i.id AND i.tenant_id = ?)) FROM items i WHERE i.tenant_id = ?", "t 0 1"},
	{"Window", "msp", "SELECT name, ROW_NUMBER() OVER (PARTITION BY player_id ORDER BY gold DESC) FROM items", "SELECT name, ROW_NUMBER() OVER (PARTITION BY player_id ORDER BY gold DESC) FROM items WHERE items.tenant_id = ?", "t"},
	{"WindowNamed", "msp", "SELECT SUM(gold) OVER w FROM items WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY 1", "SELECT SUM(gold) OVER w FROM items WHERE items.tenant_id = ? WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY 1", "t"},
	{"WindowSubselect", "ms", "SELECT RANK() OVER (ORDER BY (SELECT MAX(gold) FROM items)) FROM catalog", "SELECT RANK() OVER (ORDER BY (SELECT MAX(gold) FROM items WHERE items.tenant_id = ?)) FROM catalog", "t"},
	{"Filter", "sp", "SELECT COUNT(*) FILTER (WHERE gold > ?) FROM items", "SELECT COUNT(*) FILTER (WHERE gold > ?) FROM items WHERE items.tenant_id = ?", "0 t"},
	{"RowIn", "msp", "SELECT name FROM items WHERE (id, name) IN ((?, ?), (?, ?))", "SELECT name FROM items WHERE items.tenant_id = ? AND ((id, name) IN ((?, ?), (?, ?)))", "t 0 1 2 3"},
	{"RowEqual", "msp", "SELECT name FROM items WHERE (tenant_id, id) = (?, ?)", "SELECT name FROM items WHERE items.tenant_id = ? AND ((tenant_id, id) = (?, ?))", "t 0 1"},

	// Hints, partitions, locks.
	{"IndexHint", "m", "SELECT id FROM items i USE INDEX FOR ORDER BY (PRIMARY, k_gold) FORCE INDEX (k_x) WHERE id = ?", "SELECT id FROM items i USE INDEX FOR ORDER BY (PRIMARY, k_gold) FORCE INDEX (k_x) WHERE i.tenant_id = ? AND (id = ?)", "t 0"},
	{"IndexHintComma", "m", "SELECT 1 FROM items FORCE INDEX (PRIMARY), players", "SELECT 1 FROM items FORCE INDEX (PRIMARY), players WHERE items.tenant_id = ? AND players.tenant_id = ?", "t t"},
	{"IndexedBy", "s", "SELECT id FROM items INDEXED BY k_gold", "SELECT id FROM items INDEXED BY k_gold WHERE items.tenant_id = ?", "t"},
	{"IndexHintNone", "m", "SELECT id FROM items USE INDEX ()", "SELECT id FROM items USE INDEX () WHERE items.tenant_id = ?", "t"},
	{"IndexHintIgnore", "m", "UPDATE items IGNORE INDEX (PRIMARY) SET gold = 1", "UPDATE items IGNORE INDEX (PRIMARY) SET gold = 1 WHERE items.tenant_id = ?", "t"},
	{"NotIndexed", "s", "SELECT id FROM items AS i NOT INDEXED", "SELECT id FROM items AS i NOT INDEXED WHERE i.tenant_id = ?", "t"},
	{"NotIndexedGlobal", "s", "SELECT id FROM catalog NOT INDEXED", "", ""},
	{"Partition", "m", "SELECT id FROM items PARTITION (p0, p1) AS i", "SELECT id FROM items PARTITION (p0, p1) AS i WHERE i.tenant_id = ?", "t"},
	{"ForUpdate", "mp", "SELECT id FROM items WHERE id = ? FOR UPDATE", "SELECT id FROM items WHERE items.tenant_id = ? AND (id = ?) FOR UPDATE", "t 0"},
	{"ForUpdateSkip", "mp", "SELECT id FROM items LIMIT 5 FOR UPDATE SKIP LOCKED", "SELECT id FROM items WHERE items.tenant_id = ? LIMIT 5 FOR UPDATE SKIP LOCKED", "t"},
	{"ForUpdateOf", "mp", "SELECT i.id FROM items i FOR UPDATE OF i NOWAIT", "SELECT i.id FROM items i WHERE i.tenant_id = ? FOR UPDATE OF i NOWAIT", "t"},
	{"ForShare", "mp", "SELECT id FROM items FOR SHARE", "SELECT id FROM items WHERE items.tenant_id = ? FOR SHARE", "t"},
	{"LockInShareMode", "m", "SELECT id FROM items LOCK IN SHARE MODE", "SELECT id FROM items WHERE items.tenant_id = ? LOCK IN SHARE MODE", "t"},
	{"ForUpdateWait", "m", "SELECT id FROM items FOR UPDATE WAIT 3", "SELECT id FROM items WHERE items.tenant_id = ? FOR UPDATE WAIT 3", "t"},
	{"ForNoKeyUpdate", "p", "SELECT id FROM items FOR NO KEY UPDATE", "SELECT id FROM items WHERE items.tenant_id = ? FOR NO KEY UPDATE", "t"},

	// INSERT.
	{"Insert", "msp", "INSERT INTO items (id, name) VALUES (?, ?)", "INSERT INTO items (id, name, tenant_id) VALUES (?, ?, ?)", "0 1 t"},
	{"InsertScoped", "msp", "INSERT INTO items (tenant_id, id) VALUES (?, ?), (?, ?)", "", ""},
	{"InsertTenant", "msp", "INSERT INTO items (tenant_id, id) VALUES (@tenant, ?)", "INSERT INTO items (tenant_id, id) VALUES (?, ?)", "t 0"},
	{"InsertRows", "msp", "INSERT INTO items (id) VALUES (?), (?)", "INSERT INTO items (id, tenant_id) VALUES (?, ?), (?, ?)", "0 t 1 t"},
	{"InsertSet", "m", "INSERT INTO items SET id = ?, name = 'x'", "INSERT INTO items SET tenant_id = ?, id = ?, name = 'x'", "t 0"},
	{"InsertSetScoped", "m", "INSERT INTO items SET id = ?, tenant_id = ?", "", ""},
	{"InsertNoInto", "m", "INSERT items (id) VALUE (?)", "INSERT items (id, tenant_id) VALUE (?, ?)", "0 t"},
	{"InsertShardKey", "msp", "INSERT INTO bags (player_id, gold) VALUES (?, 1)", "INSERT INTO bags (player_id, gold, tenant_id) VALUES (?, 1, ?)", "0 t"},
	{"InsertShardKeyText", "msp", "INSERT INTO bags (player_id, gold) VALUES ('7', 1)", "INSERT INTO bags (player_id, gold, tenant_id) VALUES ('7', 1, ?)", "t"},
	{"InsertSubselect", "msp", "INSERT INTO items (id, gold) VALUES (?, (SELECT MAX(gold) FROM players))", "INSERT INTO items (id, gold, tenant_id) VALUES (?, (SELECT MAX(gold) FROM players WHERE players.tenant_id = ?), ?)", "0 t t"},
	{"InsertSelect", "msp", "INSERT INTO items (id, name) SELECT id, name FROM players WHERE id = ?", "INSERT INTO items (id, name, tenant_id) SELECT id, name, ? FROM players WHERE players.tenant_id = ? AND (id = ?)", "t t 0"},
	{"InsertSelectOwner", "msp", "INSERT INTO items (id, tenant_id) SELECT p.id, p.tenant_id AS o FROM players p", "INSERT INTO items (id, tenant_id) SELECT p.id, ? AS o FROM players p WHERE p.tenant_id = ?", "t t"},
	{"InsertSelectOwnerFolded", "m", "INSERT INTO items (tenant_id, id) SELECT p.tenant_id, MAX(p.id) FROM players p WHERE p.tenant_id = ?", "INSERT INTO items (tenant_id, id) SELECT ?, MAX(p.id) FROM players p WHERE p.tenant_id = ?", "t 0"},
	{"InsertSelectShardKeyGrouped", "msp", "INSERT INTO bags (player_id, gold) SELECT b.player_id, COUNT(*) FROM bags b GROUP BY b.player_id", "INSERT INTO bags (player_id, gold, tenant_id) SELECT b.player_id, COUNT(*), ? FROM bags b WHERE b.tenant_id = ? GROUP BY b.player_id", "t t"},
	{"InsertSelectUnion", "msp", "INSERT INTO items (id) SELECT id FROM players UNION ALL SELECT 7", "INSERT INTO items (id, tenant_id) SELECT id, ? FROM players WHERE players.tenant_id = ? UNION ALL SELECT 7, ?", "t t t"},
	{"InsertSelectGlobal", "msp", "INSERT INTO items (name, gold) SELECT name, gold FROM catalog", "INSERT INTO items (name, gold, tenant_id) SELECT name, gold, ? FROM catalog", "t"},
	{"InsertSelectShardKey", "msp", "INSERT INTO bags (player_id, gold) SELECT b.player_id, 1 FROM bags b", "INSERT INTO bags (player_id, gold, tenant_id) SELECT b.player_id, 1, ? FROM bags b WHERE b.tenant_id = ?", "t t"},
	{"InsertSelectWith", "msp", "INSERT INTO items (id) WITH c AS (SELECT id FROM players) SELECT id FROM c", "INSERT INTO items (id, tenant_id) WITH c AS (SELECT id FROM players WHERE players.tenant_id = ?) SELECT id, ? FROM c", "t t"},
	{"WithInsert", "sp", "WITH c AS (SELECT id FROM players) INSERT INTO items (id) SELECT id FROM c", "WITH c AS (SELECT id FROM players WHERE players.tenant_id = ?) INSERT INTO items (id, tenant_id) SELECT id, ? FROM c", "t t"},
	{"InsertReturning", "msp", "INSERT INTO items (tenant_id, id) VALUES (?, ?) RETURNING id, (SELECT MAX(gold) FROM players)", "INSERT INTO items (tenant_id, id) VALUES (?, ?) RETURNING id, (SELECT MAX(gold) FROM players WHERE players.tenant_id = ?)", "0 1 t"},
	{"InsertDuplicate", "m", "INSERT INTO items (tenant_id, id, gold) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE gold = gold + VALUES(gold), id = id", "INSERT INTO items (tenant_id, id, gold) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE gold = IF(items.tenant_id = VALUES(tenant_id), gold + VALUES(gold), items.gold), id = id", "0 1 2"},
	{"InsertDuplicateGuarded", "m", "INSERT INTO `items` (`tenant_id`,`gold`) VALUES (?,?) ON DUPLICATE KEY UPDATE `gold` = IF(`items`.`tenant_id` = VALUES(`tenant_id`), VALUES(`gold`), `items`.`gold`)", "", ""},
	{"InsertDuplicateHalfGuarded", "m", "INSERT INTO items (tenant_id, gold) VALUES (?, ?) ON DUPLICATE KEY UPDATE gold = IF(items.tenant_id = VALUES(tenant_id), VALUES(gold), 0)", "INSERT INTO items (tenant_id, gold) VALUES (?, ?) ON DUPLICATE KEY UPDATE gold = IF(items.tenant_id = VALUES(tenant_id), IF(items.tenant_id = VALUES(tenant_id), VALUES(gold), 0), items.gold)", "0 1"},
	{"InsertDuplicateFailing", "m", "INSERT INTO `items` (`tenant_id`,`id`) VALUES (?,?) ON DUPLICATE KEY UPDATE `id`=IF(`items`.`tenant_id` = VALUES(`tenant_id`), `id`, NULL)", "", ""},
	{"InsertDuplicateEmptying", "m", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON DUPLICATE KEY UPDATE gold = IF(items.tenant_id = VALUES(tenant_id), gold, NULL)", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON DUPLICATE KEY UPDATE gold = IF(items.tenant_id = VALUES(tenant_id), IF(items.tenant_id = VALUES(tenant_id), gold, NULL), items.gold)", "0 1"},
	{"InsertDuplicateNewKey", "m", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = IF(items.tenant_id = VALUES(tenant_id), 7, NULL)", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = IF(items.tenant_id = VALUES(tenant_id), IF(items.tenant_id = VALUES(tenant_id), 7, NULL), items.id)", "0 1"},
	{"InsertDuplicateSelect", "m", "INSERT INTO items (id, gold) SELECT p.id, 1 FROM players p ON DUPLICATE KEY UPDATE gold = p.gold", "INSERT INTO items (id, gold, tenant_id) SELECT p.id, 1, ? FROM players p WHERE p.tenant_id = ? ON DUPLICATE KEY UPDATE gold = IF(items.tenant_id = VALUES(tenant_id), p.gold, items.gold)", "t t"},
	{"InsertConflict", "sp", "INSERT INTO items (id, gold) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET gold = excluded.gold", "INSERT INTO items (id, gold, tenant_id) VALUES (?, ?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET gold = excluded.gold WHERE items.tenant_id = excluded.tenant_id", "0 1 t"},
	{"InsertConflictWhere", "sp", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET gold = ? WHERE items.gold < ? OR 1 = 1", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET gold = ? WHERE items.tenant_id = excluded.tenant_id AND (items.gold < ? OR 1 = 1)", "0 1 2 3"},
	{"InsertConflictScoped", "sp", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET gold = 1 WHERE excluded.tenant_id = items.tenant_id", "", ""},
	{"InsertConflictNothing", "sp", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON CONFLICT DO NOTHING", "", ""},
	{"InsertConflictSubselect", "sp", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET gold = (SELECT MAX(gold) FROM players)", "INSERT INTO items (tenant_id, id) VALUES (?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET gold = (SELECT MAX(gold) FROM players WHERE players.tenant_id = ?) WHERE items.tenant_id = excluded.tenant_id", "0 1 t"},
	{"InsertConflictAlias", "p", "INSERT INTO items AS i (tenant_id, id) VALUES (?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET gold = 1", "INSERT INTO items AS i (tenant_id, id) VALUES (?, ?) ON CONFLICT (tenant_id, id) DO UPDATE SET gold = 1 WHERE i.tenant_id = excluded.tenant_id", "0 1"},

	// UPDATE.
	{"Update", "msp", "UPDATE items SET gold = gold + ?", "UPDATE items SET gold = gold + ? WHERE items.tenant_id = ?", "0 t"},
	{"UpdateWhere", "msp", "UPDATE items SET gold = ? WHERE id = ? OR name = ?", "UPDATE items SET gold = ? WHERE items.tenant_id = ? AND (id = ? OR name = ?)", "0 t 1 2"},
	{"UpdateScoped", "msp", "UPDATE `items` SET `gold`=?,`name`=? WHERE `items`.`tenant_id` = ? AND (id = ?)", "", ""},
	{"UpdateAlias", "msp", "UPDATE items AS i SET gold = 1 WHERE i.id = ?", "UPDATE items AS i SET gold = 1 WHERE i.tenant_id = ? AND (i.id = ?)", "t 0"},
	{"UpdateSubselect", "msp", "UPDATE items SET gold = (SELECT MAX(p.gold) FROM players p) WHERE id IN (SELECT id FROM players)", "UPDATE items SET gold = (SELECT MAX(p.gold) FROM players p WHERE p.tenant_id = ?) WHERE items.tenant_id = ? AND (id IN (SELECT id FROM players WHERE players.tenant_id = ?))", "t t t"},
	{"UpdateOrder", "ms", "UPDATE items SET gold = 1 ORDER BY id LIMIT ?", "UPDATE items SET gold = 1 WHERE items.tenant_id = ? ORDER BY id LIMIT ?", "t 0"},
	{"UpdateJoin", "m", "UPDATE items i JOIN players p ON p.id = i.player_id SET i.gold = p.gold WHERE p.name = ?", "UPDATE items i JOIN players p ON p.id = i.player_id SET i.gold = p.gold WHERE i.tenant_id = ? AND p.tenant_id = ? AND (p.name = ?)", "t t 0"},
	{"UpdateComma", "m", "UPDATE items, players SET items.gold = 1, players.gold = 2", "UPDATE items, players SET items.gold = 1, players.gold = 2 WHERE items.tenant_id = ? AND players.tenant_id = ?", "t t"},
	{"UpdateLeftJoin", "m", "UPDATE items i LEFT JOIN players p ON p.id = i.id SET i.gold = 0", "UPDATE items i LEFT JOIN players p ON p.tenant_id = ? AND (p.id = i.id) SET i.gold = 0 WHERE i.tenant_id = ?", "t t"},
	{"UpdateDerived", "m", "UPDATE items i JOIN (SELECT id FROM players) d ON d.id = i.id SET i.gold = 0", "UPDATE items i JOIN (SELECT id FROM players WHERE players.tenant_id = ?) d ON d.id = i.id SET i.gold = 0 WHERE i.tenant_id = ?", "t t"},
	{"UpdateGlobal", "m", "UPDATE items i JOIN catalog c ON c.name = i.name SET i.gold = c.gold", "UPDATE items i JOIN catalog c ON c.name = i.name SET i.gold = c.gold WHERE i.tenant_id = ?", "t"},
	{"UpdateFrom", "sp", "UPDATE items AS i SET gold = p.gold FROM players p WHERE p.id = i.player_id", "UPDATE items AS i SET gold = p.gold FROM players p WHERE i.tenant_id = ? AND p.tenant_id = ? AND (p.id = i.player_id)", "t t"},
	{"UpdateFromJoin", "sp", "UPDATE items SET gold = 1 FROM players p LEFT JOIN bags b ON b.player_id = p.player_id", "UPDATE items SET gold = 1 FROM players p LEFT JOIN bags b ON b.tenant_id = ? AND (b.player_id = p.player_id) WHERE items.tenant_id = ? AND p.tenant_id = ?", "t t t"},
	{"UpdateWith", "msp", "WITH c AS (SELECT id FROM players) UPDATE items SET gold = 1 WHERE id IN (SELECT id FROM c)", "WITH c AS (SELECT id FROM players WHERE players.tenant_id = ?) UPDATE items SET gold = 1 WHERE items.tenant_id = ? AND (id IN (SELECT id FROM c))", "t t"},
	{"UpdateReturning", "sp", "UPDATE items SET gold = ? RETURNING gold, name", "UPDATE items SET gold = ? WHERE items.tenant_id = ? RETURNING gold, name", "0 t"},

	// DELETE.
	{"Delete", "msp", "DELETE FROM items", "DELETE FROM items WHERE items.tenant_id = ?", "t"},
	{"DeleteScoped", "msp", "DELETE FROM items WHERE tenant_id = ? AND id = ?", "", ""},
	{"DeleteWhere", "msp", "DELETE FROM items WHERE id = ? OR 1 = 1", "DELETE FROM items WHERE items.tenant_id = ? AND (id = ? OR 1 = 1)", "t 0"},
	{"DeleteSubselect", "msp", "DELETE FROM items WHERE id IN (SELECT id FROM players WHERE tenant_id = ?)", "DELETE FROM items WHERE items.tenant_id = ? AND (id IN (SELECT id FROM players WHERE tenant_id = ?))", "t 0"},
	{"DeleteOrder", "ms", "DELETE FROM items WHERE gold = 0 ORDER BY id LIMIT 10", "DELETE FROM items WHERE items.tenant_id = ? AND (gold = 0) ORDER BY id LIMIT 10", "t"},
	{"DeleteJoin", "m", "DELETE i FROM items i JOIN players p ON p.id = i.player_id WHERE p.name = ?", "DELETE i FROM items i JOIN players p ON p.id = i.player_id WHERE i.tenant_id = ? AND p.tenant_id = ? AND (p.name = ?)", "t t 0"},
	{"DeleteTwo", "m", "DELETE items.*, players FROM items, players", "DELETE items.*, players FROM items, players WHERE items.tenant_id = ? AND players.tenant_id = ?", "t t"},
	{"DeleteUsing", "m", "DELETE FROM i USING items i LEFT JOIN players p ON p.id = i.id", "DELETE FROM i USING items i LEFT JOIN players p ON p.tenant_id = ? AND (p.id = i.id) WHERE i.tenant_id = ?", "t t"},
	{"DeleteUsing", "p", "DELETE FROM items USING players p WHERE p.id = items.player_id", "DELETE FROM items USING players p WHERE items.tenant_id = ? AND p.tenant_id = ? AND (p.id = items.player_id)", "t t"},
	{"DeleteReturning", "msp", "DELETE FROM items RETURNING id", "DELETE FROM items WHERE items.tenant_id = ? RETURNING id", "t"},

	// EXPLAIN.
	{"Explain", "msp", "EXPLAIN SELECT id FROM items", "EXPLAIN SELECT id FROM items WHERE items.tenant_id = ?", "t"},
	{"ExplainAnalyze", "mp", "EXPLAIN ANALYZE SELECT id FROM items", "EXPLAIN ANALYZE SELECT id FROM items WHERE items.tenant_id = ?", "t"},
	{"ExplainFormat", "m", "EXPLAIN FORMAT=JSON UPDATE items SET gold = 1", "EXPLAIN FORMAT=JSON UPDATE items SET gold = 1 WHERE items.tenant_id = ?", "t"},
	{"ExplainQueryPlan", "s", "EXPLAIN QUERY PLAN DELETE FROM items", "EXPLAIN QUERY PLAN DELETE FROM items WHERE items.tenant_id = ?", "t"},
}

func TestJudge_Shapes(t *testing.T) {
	t.Parallel()
	for _, c := range shapes {
		forEach(t, c.dialects, c.name, func(t *testing.T, s *gate.Schema, d gate.Dialect) {
			text, want := forDialect(d, c.text), forDialect(d, c.want)
			v := bound(t, s, text)
			switch {
			case want == "" && v.Rewrite != nil:
				t.Fatalf("Judge(%q) rewrites to %q, want it scoped as it is", text, v.Rewrite.Text)
			case want == "":
			case v.Rewrite == nil:
				t.Fatalf("Judge(%q) is scoped as it is, want %q", text, want)
			case v.Rewrite.Text != want || args(v.Rewrite) != c.args:
				t.Fatalf("Judge(%q) rewrites to\n%q with %q, want\n%q with %q", text, v.Rewrite.Text, args(v.Rewrite), want, c.args)
			}
		})
	}
}

// PostgreSQL may use a value twice; the rewrite keeps it one value and numbers all anew.
func TestJudge_PostgresNumbers(t *testing.T) {
	t.Parallel()
	s := newSchema(t, gate.Postgres)
	v := bound(t, s, "SELECT $2 FROM items WHERE id = $1 OR id = $2")
	if v.Rewrite == nil || v.Rewrite.Text != "SELECT $1 FROM items WHERE items.tenant_id = $2 AND (id = $3 OR id = $1)" || args(v.Rewrite) != "1 t 0" {
		t.Fatalf("rewrite = %+v", v.Rewrite)
	}
	for _, text := range []string{"SELECT $2 FROM items", "SELECT $1, $3", "SELECT $0", "SELECT $65536"} {
		if v := s.Judge(text); v.Refusal == nil {
			t.Errorf("Judge(%q) passes, want it refused", text)
		}
	}
}

// What the caller learns of a text beside the verdict.
func TestJudge_Facts(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, dialects, text, tables string
		write, locks                 bool
		tenantArgs                   []int
		names                        []string
		shards                       []gate.ShardValue
	}{
		{name: "Read", dialects: "msp", text: "SELECT 1 FROM items i JOIN catalog c ON c.name = i.name WHERE i.tenant_id = ? AND i.id = ?", tables: "catalog=1 items=1", tenantArgs: []int{0}},
		{name: "Locks", dialects: "mp", text: "SELECT id FROM items WHERE id = ? AND tenant_id = ? FOR UPDATE", tables: "items=1", locks: true, tenantArgs: []int{1}},
		{name: "Names", dialects: "msp", text: "SELECT id FROM items WHERE tenant_id = ? AND tenant_id = 'a' AND tenant_id IN ('b', ?)", tables: "items=1", tenantArgs: []int{0, 1}, names: []string{"a", "b"}},
		{name: "Rows", dialects: "msp", text: "SELECT id FROM items WHERE tenant_id = ? AND (id, tenant_id) = (?, ?)", tables: "items=1", tenantArgs: []int{0, 2}},
		{name: "Global", dialects: "msp", text: "SELECT gold FROM catalog", tables: "catalog=1"},
		{name: "Insert", dialects: "msp", text: "INSERT INTO bags (player_id, tenant_id) VALUES (?, ?), ('7', ?)", tables: "bags!=1", write: true, tenantArgs: []int{1, 2}, shards: []gate.ShardValue{{Arg: 0}, {Arg: -1, Text: "7"}}},
		{name: "Update", dialects: "msp", text: "UPDATE items SET gold = ? WHERE tenant_id = ?", tables: "items!=1 items=1", write: true, tenantArgs: []int{1}},
		{name: "Delete", dialects: "msp", text: "DELETE FROM items WHERE tenant_id = ?", tables: "items!=1 items=1", write: true, tenantArgs: []int{0}},
	}
	for _, c := range cases {
		forEach(t, c.dialects, c.name, func(t *testing.T, s *gate.Schema, d gate.Dialect) {
			v := bound(t, s, forDialect(d, c.text))
			if v.Rewrite != nil {
				t.Fatalf("rewritten to %q", v.Rewrite.Text)
			}
			if count(v) != c.tables || v.Write != c.write || v.Locks != c.locks {
				t.Errorf("tables %q, write %v, locks %v, want %q, %v, %v", count(v), v.Write, v.Locks, c.tables, c.write, c.locks)
			}
			if !slices.Equal(v.TenantArgs, c.tenantArgs) || !slices.Equal(v.Names, c.names) {
				t.Errorf("tenant args %v, names %q, want %v, %q", v.TenantArgs, v.Names, c.tenantArgs, c.names)
			}
			if len(v.ShardValues) != len(c.shards) {
				t.Fatalf("shard values %v, want %v", v.ShardValues, c.shards)
			}
			for i, got := range v.ShardValues {
				if want := c.shards[i]; got.Arg != want.Arg || got.Text != want.Text || got.Table.Name != "bags" {
					t.Errorf("shard value %d is %+v of %s, want %+v", i, got, got.Table.Name, want)
				}
			}
		})
	}
}
