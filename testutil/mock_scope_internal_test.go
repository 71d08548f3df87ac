package testutil

import (
	"database/sql/driver"
	"strings"
	"testing"
)

func named(args ...any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

func TestScopeCheck_Bound(t *testing.T) {
	t.Parallel()
	c := scopeCheck{global: map[string]bool{"catalogs": true}}
	for _, x := range []struct {
		text string
		args []driver.NamedValue
	}{
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ?", named("a")},
		{"SELECT * FROM `items` WHERE tenant_id = ?", named("a")},
		{"SELECT * FROM `game`.`items` WHERE `items`.`tenant_id` = ?", named("a")},
		{"select * from items where Tenant_ID = ? order by id", named("a")},
		{"SELECT qty + ?,'?' FROM `items` WHERE `items`.`tenant_id` = ? AND (a = ? OR b = ?) LIMIT ?", named(1, "a", 2, 3, 4)},
		{"SELECT * FROM `items` WHERE qty BETWEEN ? AND ? AND `items`.`tenant_id` = ? GROUP BY `x`", named(1, 2, "a")},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND `items`.`tenant_id` = ? FOR UPDATE", named("a", "a")},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (name = 'it''s \\' (' OR \"x)\" = `a``)`)", named("a")},
		{"SELECT * FROM `catalogs`", nil},
		{"SELECT * FROM `catalogs` WHERE id = ? ORDER BY `id` LIMIT ?", named(1, 2)},
		{"UPDATE `items` SET `qty`=(qty - ?),`updated_at`=? WHERE `items`.`tenant_id` = ? AND (id = ?)", named(1, 2, "a", 3)},
		{"DELETE FROM `items` WHERE `items`.`tenant_id` = ? AND id = ?", named("a", 1)},
		{"INSERT INTO `items` (`id`,`tenant_id`,`qty`) VALUES (?,?,?)", named(1, "a", 2)},
		{"INSERT INTO `items` (`tenant_id`,`qty`) VALUES (?,COALESCE(?,(1))),(?,?)", named("a", 1, "a", 2)},
	} {
		if why := c.fault(x.text, x.args, "a"); why != "" {
			t.Errorf("fault(%q) = %q, want none", x.text, why)
		}
	}
}

func TestScopeCheck_E3_Unbound(t *testing.T) {
	t.Parallel()
	c := scopeCheck{global: map[string]bool{"catalogs": true}}
	for _, x := range []struct {
		text string
		args []driver.NamedValue
		want string
	}{
		{"", nil, "empty"},
		{"SELECT 1", nil, "no table"},
		{"SELECT * FROM `items`", nil, "no WHERE"},
		{"SELECT * FROM `items` LIMIT ?", named(1), "no WHERE"},
		{"SELECT * FROM `items` WHERE name = 'tenant_id = ?'", named("a"), "no condition"},
		{"SELECT `tenant_id` FROM `items` WHERE name = ?", named("a"), "no condition"},
		{"SELECT * FROM `items` WHERE (`items`.`tenant_id` = ? OR 1=1)", named("a"), "no condition"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ? OR 1=1", named("a"), "OR"},
		{"SELECT * FROM `items` WHERE 1=1 || `items`.`tenant_id` = ?", named("a"), "OR"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ?\n\tXOR\n1=1", named("a"), "OR"},
		{"SELECT * FROM `items` WHERE NOT `items`.`tenant_id` = ?", named("a"), "not tenant_id = ?"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` <> ?", named("a"), "not tenant_id = ?"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = 'a'", nil, "not a bound value"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = tenant_id", nil, "not a bound value"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ? = 0", named("a"), "not tenant_id = ?"},
		{"SELECT * FROM `items` WHERE `others`.`tenant_id` = ?", named("a"), "not tenant_id = ?"},
		{"SELECT * FROM `items` WHERE qty BETWEEN ? AND tenant_id = ?", named(1, "a"), "not tenant_id = ?"},
		{"SELECT * FROM `items` WHERE name = ? AND `items`.`tenant_id` = ?", named("a", "b"), "bound to b"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ?", named(int64(0)), "bound to 0"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ?", nil, "fewer arguments"},
		{"SELECT * FROM `items`,`users` WHERE `items`.`tenant_id` = ?", named("a"), "more than one table"},
		{"SELECT * FROM `catalogs`,`users`", nil, "more than one table"},
		{"SELECT * FROM `catalogs` AS c", nil, "more than one table"},
		{"SELECT * FROM `items` JOIN `users` ON 1 WHERE `items`.`tenant_id` = ?", named("a"), "more than one table"},
		{"SELECT * FROM `catalogs` WHERE id IN (SELECT id FROM items)", nil, "more than one table"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ? UNION TABLE `users`", named("a"), "more than one table"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ? -- ", named("a"), "comment"},
		{"SELECT * FROM `items` # WHERE `items`.`tenant_id` = ?", named("a"), "comment"},
		{"SELECT * FROM `items` /* WHERE `items`.`tenant_id` = ? */", named("a"), "comment"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ?; DELETE FROM `items`", named("a"), "second statement"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND name = 'x", named("a"), "quote"},
		{"SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (1", named("a"), "parentheses"},
		{"SELECT * FROM `items` WHERE 1) AND (`items`.`tenant_id` = ?", named("a"), "parentheses"},
		{"UPDATE `items` SET `qty`=?", named(1), "no WHERE"},
		{"UPDATE `items` SET `tenant_id`=? WHERE `items`.`tenant_id` = ?", named("b", "a"), "assigns tenant_id"},
		{"UPDATE `items`,`users` SET `qty`=? WHERE `items`.`tenant_id` = ?", named(1, "a"), "more than one table"},
		{"UPDATE `catalogs` SET `name`=?", named(1), "no WHERE"},
		{"DELETE FROM `items`", nil, "no WHERE"},
		{"DELETE `items` FROM `items` WHERE tenant_id = ?", named("a"), "none of"},
		{"INSERT INTO `items` (`id`) VALUES (?)", named("a"), "does not write tenant_id"},
		{"INSERT INTO `items` VALUES (?)", named("a"), "no columns"},
		{"INSERT INTO `items` (`tenant_id`) VALUES", nil, "no VALUES"},
		{"INSERT INTO `items` (`tenant_id`) SELECT tenant_id FROM items", nil, "more than one table"},
		{"INSERT INTO `items` (`tenant_id`,`tenant_id`) VALUES (?,?)", named("a", "b"), "twice"},
		{"INSERT INTO `items` (`id`,`tenant_id`) VALUES (?,?),(?,?)", named(1, "a", 2, "b"), "bound to b"},
		{"INSERT INTO `items` (`id`,`tenant_id`) VALUES (?,LOWER(?))", named(1, "a"), "not a bound value"},
		{"INSERT INTO `items` (`id`,`tenant_id`) VALUES (?)", named("a"), "not a bound value"},
		{"INSERT INTO `items` (`tenant_id`) VALUES (?) ON DUPLICATE KEY UPDATE `qty`=?", named("a", 1), "follows its rows"},
		{"REPLACE INTO `items` (`tenant_id`) VALUES (?)", named("a"), "none of"},
		{"TRUNCATE `items`", nil, "none of"},
	} {
		if why := c.fault(x.text, x.args, "a"); !strings.Contains(why, x.want) || why == "" {
			t.Errorf("fault(%q) = %q, want one with %q", x.text, why, x.want)
		}
	}
}

// FuzzScopeCheck looks for texts that make the check panic.
func FuzzScopeCheck(f *testing.F) {
	f.Add("SELECT * FROM `items` WHERE `items`.`tenant_id` = ? AND (a = 'x')")
	f.Add("INSERT INTO `items` (`id`,`tenant_id`) VALUES (?,?),(?,?)")
	f.Add("UPDATE `items` SET `qty`=? WHERE tenant_id = ?")
	f.Fuzz(func(t *testing.T, text string) {
		why := scopeCheck{}.fault(text, named("a", "a", "a", "a"), "a")
		if why == "" && !strings.Contains(strings.ToLower(text), "tenant_id") {
			t.Errorf("fault(%q) found none", text)
		}
	})
}
