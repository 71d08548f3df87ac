package dal_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/tenant"
)

type (
	// Ship's key holds the owner, and its crew comes over a join table with names of its own.
	Ship struct {
		TenantID tenant.ID  `gorm:"primaryKey;column:tenant_id"`
		ID       int64      `gorm:"primaryKey;autoIncrement:false"`
		Crew     []*Sailor  `gorm:"many2many:crews;foreignKey:ID;joinForeignKey:VesselID;references:ID;joinReferences:HandID"`
		Ports    []*Harbour `gorm:"many2many:ship_harbours"`
	}
	Sailor struct {
		dal.UUIDModel
		Name    string
		MateID  *uuid.UUID
		Mate    *Sailor
		Friends []*Sailor `gorm:"many2many:friends;joinForeignKey:OneID;joinReferences:OtherID"`
		Ships   []Ship    `gorm:"many2many:crews;foreignKey:ID;joinForeignKey:HandID;references:ID;joinReferences:VesselID"`
	}
	Crew struct {
		TenantID tenant.ID `gorm:"primaryKey;column:tenant_id"`
		VesselID int64     `gorm:"primaryKey;autoIncrement:false"`
		HandID   uuid.UUID `gorm:"primaryKey"`
	}
	Friend struct {
		TenantID tenant.ID `gorm:"primaryKey;column:tenant_id"`
		OneID    uuid.UUID `gorm:"primaryKey"`
		OtherID  uuid.UUID `gorm:"primaryKey"`
	}
	// Harbour is everybody's.
	Harbour struct {
		ID   int64 `gorm:"primaryKey;autoIncrement:false"`
		Name string
	}
	// ShipHarbour has the columns that gorm makes of a key that holds the owner.
	ShipHarbour struct {
		TenantID     tenant.ID `gorm:"primaryKey;column:tenant_id"`
		ShipTenantID tenant.ID
		ShipID       int64 `gorm:"primaryKey;autoIncrement:false"`
		HarbourID    int64 `gorm:"primaryKey;autoIncrement:false"`
	}
)

func TestAssociation_OtherKeys(t *testing.T) {
	t.Parallel()
	g := newGame(t, func(c *dal.Config, _ *[]tenant.Tenant) {
		c.Tables = append(c.Tables, dal.Local[Ship](), dal.Local[Sailor](), dal.Local[Crew](), dal.Local[Friend](), dal.Global[Harbour](), dal.Local[ShipHarbour]())
	})
	for _, s := range g.shards {
		if _, err := g.raw[s].Exec(`CREATE TABLE ships (tenant_id TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (tenant_id, id));
			CREATE TABLE sailors (tenant_id TEXT NOT NULL, id TEXT NOT NULL, name TEXT, mate_id TEXT, created_at DATETIME, updated_at DATETIME, PRIMARY KEY (tenant_id, id));
			CREATE TABLE crews (tenant_id TEXT NOT NULL, vessel_id INTEGER NOT NULL, hand_id TEXT NOT NULL, PRIMARY KEY (tenant_id, vessel_id, hand_id));
			CREATE TABLE friends (tenant_id TEXT NOT NULL, one_id TEXT NOT NULL, other_id TEXT NOT NULL, PRIMARY KEY (tenant_id, one_id, other_id));
			CREATE TABLE harbours (id INTEGER NOT NULL PRIMARY KEY, name TEXT);
			CREATE TABLE ship_harbours (tenant_id TEXT NOT NULL, ship_tenant_id TEXT, ship_id INTEGER NOT NULL, harbour_id INTEGER NOT NULL, PRIMARY KEY (tenant_id, ship_id, harbour_id));
			INSERT INTO harbours (id, name) VALUES (1, 'north'), (2, 'south')`); err != nil {
			t.Fatal(err)
		}
	}
	foreign := Sailor{Name: "b"}
	if err := g.player(g.b).Create(&Ship{ID: 1, Crew: []*Sailor{&foreign}, Ports: []*Harbour{{ID: 1}}}).Error; err != nil {
		t.Fatal(err)
	}
	mate := &Sailor{Name: "mate"}
	ship := Ship{ID: 1, Crew: []*Sailor{{Name: "one", Mate: mate, Friends: []*Sailor{{Name: "two"}, mate}}}, Ports: []*Harbour{{ID: 2, Name: "not written"}}}
	if err := g.player(g.a).Create(&ship).Error; err != nil {
		t.Fatal(err)
	}
	one := ship.Crew[0]
	var got Ship
	if err := g.player(g.a).Preload("Crew.Mate").Preload("Crew.Friends").Preload("Ports").First(&got, 1).Error; err != nil {
		t.Fatal(err)
	}
	if len(got.Crew) != 1 || got.Crew[0].Name != "one" || got.Crew[0].Mate == nil || got.Crew[0].Mate.Name != "mate" || len(got.Crew[0].Friends) != 2 || len(got.Ports) != 1 || got.Ports[0].Name != "south" {
		t.Errorf("loaded %+v", got)
	}
	if err := g.player(g.a).Model(&Ship{TenantID: "a", ID: 1}).Association("Crew").Append(&Sailor{Name: "three"}, &Sailor{UUIDModel: dal.UUIDModel{ID: mate.ID}}); err != nil {
		t.Error(err)
	}
	if n := g.player(g.a).Model(&Ship{TenantID: "a", ID: 1}).Association("Crew").Count(); n != 3 {
		t.Errorf("a crew of %d, want 3", n)
	}
	var ships []Ship
	if err := g.player(g.a).Model(one).Association("Ships").Find(&ships); err != nil || len(ships) != 1 || ships[0].TenantID != "a" {
		t.Errorf("the sailor's ships: %+v, %v", ships, err)
	}
	if err := g.player(g.a).Model(one).Association("Friends").Replace(&Sailor{UUIDModel: dal.UUIDModel{ID: mate.ID}}); err != nil {
		t.Error(err)
	}
	if n := g.player(g.a).Model(one).Association("Friends").Count(); n != 1 {
		t.Errorf("%d friends, want 1", n)
	}
	if err := g.player(g.a).Model(&Ship{TenantID: "a", ID: 1}).Association("Ports").Append(&Harbour{ID: 1}); err != nil {
		t.Error(err)
	}
	if err := g.player(g.a).Model(&Ship{TenantID: "a", ID: 1}).Association("Ports").Delete(&Harbour{ID: 2}); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"crew":         g.player(g.a).Model(&Ship{TenantID: "a", ID: 1}).Association("Crew").Append(&Sailor{UUIDModel: dal.UUIDModel{ID: foreign.ID}}),
		"friend":       g.player(g.a).Model(one).Association("Friends").Append(&Sailor{UUIDModel: dal.UUIDModel{ID: foreign.ID}}),
		"mate":         g.player(g.a).Model(one).Association("Mate").Append(&Sailor{UUIDModel: dal.UUIDModel{ID: foreign.ID}}),
		"foreign key":  g.player(g.a).Model(&Sailor{}).Where("id = ?", one.ID).Update("mate_id", foreign.ID).Error,
		"no such port": g.player(g.a).Model(&Ship{TenantID: "a", ID: 1}).Association("Ports").Append(&Harbour{ID: 9}),
	} {
		if !errors.Is(err, dal.ErrTarget) {
			t.Errorf("%s: %v, want %v", what, err, dal.ErrTarget)
		}
	}
	stranger := &Sailor{UUIDModel: dal.UUIDModel{ID: foreign.ID}, Mate: one} // whom the mate names in turn
	one.Mate, one.Friends = stranger, nil
	full := g.player(g.a).Session(&gorm.Session{FullSaveAssociations: true})
	if err := full.Updates(stranger).Error; !errors.Is(err, dal.ErrTarget) {
		t.Errorf("a circle through b's row: %v, want %v", err, dal.ErrTarget)
	}
	one.Mate, one.Friends = nil, []*Sailor{stranger}
	if err := full.Updates(stranger).Error; !errors.Is(err, dal.ErrTarget) {
		t.Errorf("a circle over a join table through b's row: %v, want %v", err, dal.ErrTarget)
	}
	for query, want := range map[string]int{
		"SELECT COUNT(*) FROM friends WHERE one_id = '" + foreign.ID.String() + "' OR other_id = '" + foreign.ID.String() + "'": 0,
		"SELECT COUNT(*) FROM sailors WHERE mate_id = '" + foreign.ID.String() + "'":                                            0,
		"SELECT COUNT(*) FROM crews WHERE tenant_id = 'a'":                                                                      3, "SELECT COUNT(*) FROM crews WHERE tenant_id = 'b'": 1,
		"SELECT COUNT(*) FROM friends WHERE tenant_id = 'a'": 1, "SELECT COUNT(*) FROM sailors WHERE tenant_id = 'a'": 4, "SELECT COUNT(*) FROM sailors WHERE tenant_id = 'b'": 1,
		"SELECT COUNT(*) FROM ship_harbours WHERE tenant_id = 'a' AND ship_tenant_id = 'a' AND harbour_id = 1": 1, "SELECT COUNT(*) FROM ship_harbours": 2,
		"SELECT COUNT(*) FROM harbours WHERE name IN ('north', 'south')": 4, // on both shards
	} {
		if n := g.count(t, query); n != want {
			t.Errorf("%s: %d, want %d", query, n, want)
		}
	}
}
