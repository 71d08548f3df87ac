package main

import (
	"context"

	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/report"
	"github.com/tenantdal/tenantdal/examples/guilddonation/internal/trace"
	"github.com/tenantdal/tenantdal/saga"
)

// donation names a donate line's donation.
type donation struct{ tenant, player, key string }

// collect reads the report from the databases: states from the journals, balances from the tables. Nothing comes from the program's memory.
func (w *work) collect(ctx context.Context) (*report.Report, []report.Conservation, error) {
	rep := &report.Report{}
	journal := map[donation]saga.Journal{}
	shards := map[string]*report.Shard{}
	places, err := w.store.Places(system(ctx))
	if err != nil {
		return nil, nil, err
	}
	for _, p := range places {
		shard := shards[string(p.Shard)]
		if shard == nil {
			shard = &report.Shard{ID: string(p.Shard)}
			shards[shard.ID] = shard
		}
		var bags []saga.Bag
		var stock []saga.Warehouse
		var guilds []saga.Guild
		var rows []saga.Journal
		for _, dest := range []any{&bags, &stock, &guilds, &rows} {
			if err := w.store.OnPlace(system(ctx), p).Find(dest).Error; err != nil {
				return nil, nil, err
			}
		}
		type player struct{ tenant, id string }
		players := map[player]bool{}
		for _, b := range bags {
			players[player{string(b.TenantID), b.PlayerID}] = true
			rep.Backpacks = append(rep.Backpacks, report.Backpack{Tenant: string(b.TenantID), Player: b.PlayerID, Item: b.ItemID, Qty: b.Qty})
		}
		for _, s := range stock {
			rep.Warehouses = append(rep.Warehouses, report.Warehouse{Tenant: string(s.TenantID), Guild: s.GuildID, Item: s.ItemID, Qty: s.Qty})
		}
		for _, r := range rows {
			journal[donation{string(r.TenantID), r.PlayerID, r.RequestKey}] = r
			if !r.State.Final() {
				rep.Pending++
			}
		}
		shard.Players += len(players)
		shard.Guilds += len(guilds)
		shard.Donations += len(rows)
	}
	for _, s := range shards {
		rep.Shards = append(rep.Shards, *s)
	}
	for _, l := range w.trace.Donations {
		rep.Outcomes = append(rep.Outcomes, report.Outcome{Line: l.No, Tenant: l.Tenant, Key: l.Key, State: outcome(journal, l)})
	}
	accounts, err := w.conservation(ctx)
	if err != nil {
		return nil, nil, err
	}
	rep.Conserved = report.Conserved(accounts)
	rep.Sort()
	return rep, accounts, nil
}

// outcome is a line's state: its journal row's, if that row is of this very donation.
func outcome(journal map[donation]saga.Journal, l trace.Line) report.State {
	row, ok := journal[donation{l.Tenant, l.Player, l.Key}]
	if !ok || row.GuildID != l.Guild || row.ItemID != l.Item || row.Qty != l.Qty {
		return report.Rejected
	}
	switch row.State {
	case saga.Settled:
		return report.Completed
	case saga.Refunded:
		return report.Compensated
	}
	return report.State(row.State.String())
}

// conservation compares bags, pending donations and warehouses with the ledger.
func (w *work) conservation(ctx context.Context) ([]report.Conservation, error) {
	balances, err := w.donations.Conservation(system(ctx))
	if err != nil {
		return nil, err
	}
	accounts := make([]report.Conservation, len(balances))
	for i, b := range balances {
		accounts[i] = report.Conservation{
			Tenant: string(b.Tenant), Item: b.Item, Minted: b.Minted, Burned: b.Burned,
			Bags: b.Bags, Pending: b.Pending, Warehouses: b.Warehouses,
		}
	}
	return accounts, nil
}
