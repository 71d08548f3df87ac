package dal_test

import (
	"cmp"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

// owner is what a row's TenantID holds: nothing beside others, where the store fills it in.
func (w side) owner() tenant.ID {
	if !w.alone {
		return ""
	}
	id, _ := tenant.FromContext(w.ctx)
	return id
}

// write makes an op of a chain and a finisher that changes rows.
func write(c chain, shape, text string, run func(w side, db *gorm.DB) *gorm.DB) op {
	return op{shapes: c.shapes(shape), text: "gorm " + c.String() + "." + text, run: func(w side) outcome {
		res := run(w, c.apply(w, w.fresh()))
		return outcome{affected: res.RowsAffected, err: res.Error}
	}}
}

func (g generator) newTool() Tool {
	t := Tool{ID: g.newKey(), PlayerID: playerSeven, ActorID: g.key(), Name: g.textOf(toolTable), Qty: g.number()}
	if chance(g.p, 2) {
		k := fmt.Sprintf("k%d", g.p.n(3))
		t.Kind = &k
	}
	return t
}

func (g generator) newActor() Actor {
	return Actor{ID: g.newKey(), PlayerID: playerSeven, Name: g.name(), Gold: g.number()}
}

// conflict is an ON CONFLICT clause. SQLite needs the columns of a key; beside others the store may be given them without tenant_id.
func (g generator) conflict(c clause.OnConflict) step {
	named := chance(g.p, 2)
	return step{"OnConflict", fmt.Sprintf("OnConflict(%+v, owner named %t)", c, named), func(w side, db *gorm.DB) *gorm.DB {
		c := c
		c.Columns = []clause.Column{{Name: "id"}}
		if w.alone || named {
			c.Columns = []clause.Column{{Name: "tenant_id"}, {Name: "id"}}
		}
		return db.Clauses(c)
	}}
}

// naming says which actors an op names.
func naming(o op, tools ...Tool) op {
	for _, t := range tools {
		o.targets = append(o.targets, t.ActorID)
	}
	return o
}

func (g generator) gormWrite() op {
	n, key := g.number(), g.key()
	t := g.table()
	model := chain{{"Model", fmt.Sprintf("Model(%s)", t.name), func(_ side, db *gorm.DB) *gorm.DB { return db.Model(t.model()) }}}
	set := t.ints[0]
	switch k := g.p.n(30); k {
	case 0, 1:
		row := g.newTool()
		return naming(write(nil, "Create", fmt.Sprintf("Create(%s)", showTool(row)), func(_ side, db *gorm.DB) *gorm.DB {
			row := row
			return db.Create(&row)
		}), row)
	case 2:
		row := g.newActor()
		return write(nil, "Create", fmt.Sprintf("Create(%s)", showActor(row)), func(_ side, db *gorm.DB) *gorm.DB {
			row := row
			return db.Create(&row)
		})
	case 3:
		rows := []Tool{g.newTool(), g.newTool(), g.newTool()}
		size := one(g.p, 0, 2)
		return naming(write(nil, "Create batch", fmt.Sprintf("Create(%v, batches of %d)", show(&rows), size), func(_ side, db *gorm.DB) *gorm.DB {
			rows := append([]Tool(nil), rows...)
			if size > 0 {
				return db.CreateInBatches(rows, size)
			}
			return db.Create(&rows)
		}), rows...)
	case 4:
		row := g.newTool()
		fields := func() map[string]any {
			return map[string]any{"id": row.ID, "player_id": playerSeven, "actor_id": row.ActorID, "Name": row.Name, "qty": row.Qty}
		}
		many := chance(g.p, 2)
		return naming(write(nil, "Create map", fmt.Sprintf("Create(map %s, many %t)", showTool(row), many), func(w side, db *gorm.DB) *gorm.DB {
			m := fields()
			if w.alone {
				m["tenant_id"] = w.owner()
			}
			if many {
				second := fields()
				second["id"] = row.ID + 20
				if w.alone {
					second["tenant_id"] = w.owner()
				}
				return db.Model(&Tool{}).Create([]map[string]any{m, second})
			}
			return db.Model(&Tool{}).Create(m)
		}), row)
	case 5:
		row := g.newTool()
		omit := chance(g.p, 2)
		return naming(write(nil, "Create", fmt.Sprintf("Omit/Select %t Create(%s)", omit, showTool(row)), func(_ side, db *gorm.DB) *gorm.DB {
			row := row
			if omit {
				return db.Omit("kind").Create(&row)
			}
			return db.Select("ID", "TenantID", "PlayerID", "Name", "Qty").Create(&row)
		}), row)
	case 6, 7:
		row := g.newTool()
		form := g.conflict(one(g.p, clause.OnConflict{DoNothing: true}, clause.OnConflict{UpdateAll: true}, clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"qty", "name"})},
			clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{"qty": 99})}))
		return naming(write(chain{form}, "Create", fmt.Sprintf("Create(%s)", showTool(row)), func(_ side, db *gorm.DB) *gorm.DB {
			row := row
			return db.Create(&row)
		}), row)
	case 8:
		rows := []Tool{g.newTool(), g.newTool()}
		form := g.conflict(one(g.p, clause.OnConflict{DoNothing: true}, clause.OnConflict{UpdateAll: true}))
		return naming(write(chain{form}, "Create batch", fmt.Sprintf("Create(%v)", show(&rows)), func(_ side, db *gorm.DB) *gorm.DB {
			rows := append([]Tool(nil), rows...)
			return db.Create(&rows)
		}), rows...)
	case 9, 10:
		row := g.newTool()
		return naming(write(nil, "Save", fmt.Sprintf("Save(%s)", showTool(row)), func(w side, db *gorm.DB) *gorm.DB {
			row := row
			row.TenantID = w.owner()
			if w.alone {
				return saveAlone(w, &row)
			}
			return db.Save(&row)
		}), row)
	case 11:
		return write(append(model, g.condition(t, false)), "Update", fmt.Sprintf("Update(%s, %d)", set, n), func(_ side, db *gorm.DB) *gorm.DB { return db.Update(set, n) })
	case 12:
		return write(append(model, g.conditions(t, false)...), "Updates map", fmt.Sprintf("Updates(map %s: %d)", set, n), func(_ side, db *gorm.DB) *gorm.DB {
			return db.Updates(map[string]any{set: n})
		})
	case 13:
		return write(append(chain{}, g.condition(toolTable, false)), "Updates struct", fmt.Sprintf("Model(&Tool{}).Updates(Tool{Qty: %d, Name: same})", n), func(_ side, db *gorm.DB) *gorm.DB {
			return db.Model(&Tool{}).Updates(Tool{Qty: n, Name: "t9"})
		})
	case 14:
		return write(nil, "Updates struct", fmt.Sprintf("Model(&Tool{ID: %d}).Select(Qty, Kind).Updates", key), func(w side, db *gorm.DB) *gorm.DB {
			return db.Model(&Tool{ID: key}).Select("Qty", "Kind").Updates(Tool{Qty: n})
		})
	case 15:
		return write(append(model, g.condition(t, false)), "UpdateColumn", fmt.Sprintf("UpdateColumn(%s, %s + %d)", set, set, n), func(_ side, db *gorm.DB) *gorm.DB {
			return db.UpdateColumn(set, gorm.Expr(set+" + ?", n))
		})
	case 16:
		return write(append(model, g.condition(t, false)), "UpdateColumn", "UpdateColumns(map expr)", func(_ side, db *gorm.DB) *gorm.DB {
			return db.UpdateColumns(map[string]any{set: gorm.Expr("CASE WHEN "+set+" > ? THEN 1 ELSE "+set+" + 1 END", n)})
		})
	case 17:
		return write(append(chain{}, g.condition(toolTable, false)), "Update sub-query value", "Update(qty, sub)", func(w side, db *gorm.DB) *gorm.DB {
			return db.Model(&Tool{}).Update("qty", w.fresh().Model(&Jotting{}).Select("MAX(amount)"))
		})
	case 18:
		return write(append(chain{}, g.condition(toolTable, false)), "Update text with sub-select", "UpdateColumn(qty, expr with SELECT)", func(_ side, db *gorm.DB) *gorm.DB {
			return db.Model(&Tool{}).UpdateColumn("qty", gorm.Expr("(SELECT COUNT(*) FROM jottings WHERE jottings.no = tools.id) + ?", n))
		})
	case 19:
		return write(nil, "Delete by key", fmt.Sprintf("Delete(%s, %d)", t.name, key), func(_ side, db *gorm.DB) *gorm.DB {
			if t.name == "jottings" {
				return db.Delete(&Jotting{}, "no = ?", key)
			}
			return db.Delete(t.model(), key)
		})
	case 20:
		return write(nil, "Delete by key", fmt.Sprintf("Delete(&Tool{ID: %d})", key), func(_ side, db *gorm.DB) *gorm.DB { return db.Delete(&Tool{ID: key}) })
	case 21:
		i := one(g.p, t.ints...)
		return write(g.conditions(t, false), "Delete", fmt.Sprintf("Delete(%s, %s < %d)", t.name, i, n/3), func(_ side, db *gorm.DB) *gorm.DB {
			return db.Delete(t.model(), i+" < ?", n/3)
		})
	case 22:
		return write(chain{{"Unscoped", "Unscoped()", func(_ side, db *gorm.DB) *gorm.DB { return db.Unscoped() }}}, "Delete", fmt.Sprintf("Delete(Actor, id IN (%d, 2))", key), func(_ side, db *gorm.DB) *gorm.DB {
			return db.Where("id IN ?", []int64{key, 2}).Delete(&Actor{})
		})
	case 23:
		return write(nil, "missing WHERE", fmt.Sprintf("write to all rows of %s", t.name), func(_ side, db *gorm.DB) *gorm.DB {
			if key%2 == 0 {
				return db.Delete(t.model())
			}
			return db.Model(t.model()).Update(set, 0)
		})
	case 24:
		return write(nil, "AllowGlobalUpdate", fmt.Sprintf("AllowGlobalUpdate Update(%s)", t.name), func(_ side, db *gorm.DB) *gorm.DB {
			return db.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(t.model()).Update(set, gorm.Expr(set+" + 1"))
		})
	case 25:
		name := g.name()
		assign := chance(g.p, 2)
		id := g.newKey()
		return op{shapes: []string{"FirstOrCreate"}, text: fmt.Sprintf("gorm Where(name %s).Attrs(gold %d, id %d).FirstOrCreate/Assign %t", name, n, id, assign), run: func(w side) outcome {
			var row Actor
			db := w.fresh().Where("name = ?", name).Attrs(Actor{ID: id, PlayerID: playerSeven, Name: name, Gold: n})
			if assign {
				db = db.Assign(map[string]any{"gold": n})
			}
			res := db.FirstOrCreate(&row)
			return outcome{rows: show(&row), affected: res.RowsAffected, err: res.Error}
		}}
	case 26:
		name := g.name()
		return op{shapes: []string{"FirstOrInit"}, text: fmt.Sprintf("gorm FirstOrInit(name %s)", name), run: func(w side) outcome {
			var row Actor
			res := w.fresh().Where("name = ?", name).Attrs(Actor{Gold: n}).FirstOrInit(&row)
			return outcome{rows: show(&row), err: res.Error}
		}}
	case 27:
		return g.association()
	}
	return g.gormGenericWrite()
}

// saveAlone is what Save must do: update the tenant's row with that key, or insert one. Gorm's own, on a table whose key is (tenant_id, id), fails on SQLite.
func saveAlone(w side, row *Tool) *gorm.DB {
	res := w.fresh().Model(&Tool{}).Where("id = ?", row.ID).Select("*").Omit("id", "tenant_id").Updates(row)
	if res.Error != nil || res.RowsAffected > 0 {
		return res
	}
	return w.fresh().Create(row)
}

// association writes related rows. Beside others it is gorm's; alone, where gorm upserts by a key that this table has not, it is what that means.
func (g generator) association() op {
	key, tool, row := g.key(), g.key(), g.newActor()
	adopt := func(w side, tool, actor int64) error {
		res := w.fresh().Exec("UPDATE tools SET actor_id = ? WHERE id = ?", actor, tool)
		if res.Error == nil && res.RowsAffected == 0 {
			return dal.ErrTarget
		}
		return res.Error
	}
	owner := func(w side) *Actor { return &Actor{ID: key, TenantID: w.owner(), PlayerID: playerSeven} }
	switch g.p.n(6) {
	case 4:
		return op{shapes: []string{"Association Replace"}, targets: []int64{key}, text: fmt.Sprintf("gorm Model(&Actor{%d}).Association(Tools).Replace(%d)", key, tool), run: func(w side) outcome {
			if !w.alone {
				return outcome{err: w.fresh().Model(owner(w)).Association("Tools").Replace(&Tool{ID: tool})}
			}
			if err := adopt(w, tool, key); err != nil {
				return outcome{err: err}
			}
			return outcome{err: w.fresh().Exec("UPDATE tools SET actor_id = NULL WHERE actor_id = ? AND id <> ?", key, tool).Error}
		}}
	case 5:
		return op{shapes: []string{"Delete with associations"}, text: fmt.Sprintf("gorm Select(Tools).Delete(&Actor{%d})", key), run: func(w side) outcome {
			return outcome{err: w.fresh().Select("Tools").Delete(owner(w)).Error}
		}}
	case 0:
		return op{shapes: []string{"Association Append"}, targets: []int64{key}, text: fmt.Sprintf("gorm Model(&Actor{%d}).Association(Tools).Append(%d)", key, tool), run: func(w side) outcome {
			if w.alone {
				return outcome{err: adopt(w, tool, key)}
			}
			return outcome{err: w.fresh().Model(owner(w)).Association("Tools").Append(&Tool{ID: tool})}
		}}
	case 1:
		return op{shapes: []string{"Create with associations"}, text: fmt.Sprintf("gorm Create(%s with tool %d)", showActor(row), tool), run: func(w side) outcome {
			a := row
			if w.alone {
				return outcome{err: w.fresh().Transaction(func(tx *gorm.DB) error {
					w.db = tx
					var n int64
					if err := tx.Model(&Tool{}).Where("id = ?", tool).Count(&n).Error; err != nil || n == 0 {
						return cmp.Or(err, dal.ErrTarget)
					}
					if err := w.fresh().Create(&a).Error; err != nil {
						return err
					}
					return adopt(w, tool, a.ID)
				})}
			}
			a.Tools = []Tool{{ID: tool}}
			return outcome{err: w.fresh().Create(&a).Error}
		}}
	case 2:
		return op{shapes: []string{"Association Clear"}, text: fmt.Sprintf("gorm Model(&Actor{%d}).Association(Tools).Clear()", key), run: func(w side) outcome {
			return outcome{err: w.fresh().Model(owner(w)).Association("Tools").Clear()}
		}}
	}
	return op{shapes: []string{"Association Delete"}, text: fmt.Sprintf("gorm Model(&Actor{%d}).Association(Tools).Delete(%d)", key, tool), run: func(w side) outcome {
		return outcome{err: w.fresh().Model(owner(w)).Association("Tools").Delete(&Tool{ID: tool, TenantID: w.owner()})}
	}}
}

func (g generator) gormGenericWrite() op {
	n, key := g.number(), g.key()
	switch g.p.n(4) {
	case 0:
		return op{shapes: []string{"Generics write"}, text: fmt.Sprintf("gorm.G[Tool].Where(id = %d).Update(qty, %d)", key, n), run: func(w side) outcome {
			k, err := gorm.G[Tool](w.fresh()).Where("id = ? OR qty = 1", key).Update(w.ctx, "qty", n)
			return outcome{affected: int64(k), err: err}
		}}
	case 1:
		return op{shapes: []string{"Generics write"}, text: fmt.Sprintf("gorm.G[Jotting].Where(no = %d).Updates(amount %d)", key, n+1), run: func(w side) outcome {
			k, err := gorm.G[Jotting](w.fresh()).Where("no >= ?", key).Updates(w.ctx, Jotting{Amount: n + 1})
			return outcome{affected: int64(k), err: err}
		}}
	case 2:
		return op{shapes: []string{"Generics write"}, text: fmt.Sprintf("gorm.G[Tool].Where(qty < %d).Delete", n/3), run: func(w side) outcome {
			k, err := gorm.G[Tool](w.fresh()).Where("qty < ?", n/3).Delete(w.ctx)
			return outcome{affected: int64(k), err: err}
		}}
	}
	row := g.newTool()
	return op{shapes: []string{"Generics write"}, targets: []int64{row.ActorID}, text: fmt.Sprintf("gorm.G[Tool].Create(%s)", showTool(row)), run: func(w side) outcome {
		row := row
		return outcome{err: gorm.G[Tool](w.fresh()).Create(w.ctx, &row)}
	}}
}

// hostile are calls that name what is not the tenant's: they must be refused.
func (g generator) hostile() op {
	other := func(w side) tenant.ID {
		id, _ := tenant.FromContext(w.ctx)
		for _, r := range rivals {
			if r != id {
				return r
			}
		}
		return ""
	}
	no := func(text string, run func(w side) *gorm.DB) op {
		return op{shapes: []string{"hostile"}, refuse: true, text: "hostile " + text, run: func(w side) outcome {
			res := run(w)
			return outcome{affected: res.RowsAffected, err: res.Error}
		}}
	}
	row := g.newTool()
	switch g.p.n(15) {
	case 9:
		return no("a SELECT of another tenant", func(w side) *gorm.DB {
			return w.fresh().Raw("SELECT id FROM tools WHERE tenant_id = ?", other(w)).Scan(&[]int64{})
		})
	case 10:
		return no("a SELECT that names another tenant", func(w side) *gorm.DB {
			return w.fresh().Raw("SELECT id FROM tools WHERE qty > 1 OR tenant_id = '" + string(other(w)) + "'").Scan(&[]int64{})
		})
	case 11:
		return no("another tenant beside its own", func(w side) *gorm.DB {
			return w.fresh().Model(&Tool{}).Where("tenant_id IN ?", rivals).Find(&[]Tool{})
		})
	case 12:
		return no("Where struct of another tenant", func(w side) *gorm.DB { return w.fresh().Where(&Tool{TenantID: other(w)}).Find(&[]Tool{}) })
	case 13:
		return no("a table that is not declared", func(w side) *gorm.DB { return w.fresh().Raw("SELECT name FROM sqlite_master").Scan(&[]string{}) })
	case 14:
		return no("another tenant's row in a sub-select", func(w side) *gorm.DB {
			return w.fresh().Model(&Tool{}).Where("id IN (?)", w.fresh().Model(&Tool{}).Select("id").Where("tenant_id = ?", other(w))).Update("qty", 1)
		})
	case 0:
		return no("Create of another tenant's row", func(w side) *gorm.DB {
			row := row
			row.TenantID = other(w)
			return w.fresh().Create(&row)
		})
	case 1:
		return no("Update of the owner", func(w side) *gorm.DB {
			return w.fresh().Model(&Tool{}).Where("id = ?", row.ID).Update("tenant_id", other(w))
		})
	case 2:
		return no("raw UPDATE of the owner", func(w side) *gorm.DB {
			return w.fresh().Exec("UPDATE tools SET tenant_id = ? WHERE id = ?", other(w), row.ID)
		})
	case 3:
		return no("a comment", func(w side) *gorm.DB { return w.fresh().Exec("UPDATE tools SET qty = 0 -- all") })
	case 4:
		return no("two statements", func(w side) *gorm.DB {
			return w.fresh().Exec("UPDATE tools SET qty = 0 WHERE id = 1; DELETE FROM tools WHERE 1 = 1")
		})
	case 5:
		return no("raw INSERT of another tenant's row", func(w side) *gorm.DB {
			return w.fresh().Exec("INSERT INTO tools (tenant_id, id, player_id, qty) VALUES (?, 77, '7', 1)", other(w))
		})
	case 6:
		return no("a table of another keyspace", func(w side) *gorm.DB { return w.fresh().Exec("UPDATE guilds SET name = 'x' WHERE id = 1") })
	case 7:
		return no("a system table", func(w side) *gorm.DB { return w.fresh().Raw("SELECT id FROM jobs").Scan(&[]int64{}) })
	}
	return no("a write to a global table", func(w side) *gorm.DB { return w.fresh().Exec("UPDATE prices SET cost = 0 WHERE id = 1") })
}
