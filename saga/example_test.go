package saga_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/tenantdal/tenantdal/dal"
	"github.com/tenantdal/tenantdal/migrations/schema"
	"github.com/tenantdal/tenantdal/saga"
	"github.com/tenantdal/tenantdal/tenant"
)

// A guild on another shard gets what a player gives.
func ExampleDonations() {
	dir, err := os.MkdirTemp("", "donations")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := donate(context.Background(), dir); err != nil {
		log.Fatal(err)
	}
	// Output:
	// donated: pending
	// again: settled
	// acme gold: 10 minted, 7 in bags, 3 in warehouses, conserved: true
}

func donate(ctx context.Context, dir string) error {
	registry, err := tenant.NewStatic(tenant.Tenant{ID: "acme", Model: tenant.SharedTable})
	if err != nil {
		return err
	}
	cfg := dal.Config{Cluster: dal.SQLiteCluster(dir, 3), Registry: registry, Tables: saga.Tables()}
	if _, err := schema.Up(ctx, cfg, schema.Saga()); err != nil {
		return err
	}
	store, err := dal.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close(ctx) }()

	donations, err := saga.NewDonations(store, saga.Config{})
	if err != nil {
		return err
	}
	if err := donations.Start(ctx); err != nil {
		return err
	}
	defer func() { _ = donations.Close(ctx) }()

	acme := tenant.NewContext(ctx, "acme")
	if err := donations.SetGuild(acme, "12", true); err != nil {
		return err
	}
	if err := donations.Grant(acme, "quest-1", "7", "gold", 10); err != nil {
		return err
	}
	gift := saga.Donation{Key: "request-1", Player: "7", Guild: "12", Item: "gold", Qty: 3}
	receipt, err := donations.Donate(acme, gift)
	if err != nil {
		return err
	}
	fmt.Println("donated:", receipt.State)

	everyone := tenant.System(ctx, "look at the books", saga.TableNames()...)
	if _, err := donations.Drain(everyone); err != nil {
		return err
	}
	if receipt, err = donations.Donate(acme, gift); err != nil { // the caller never got the first answer
		return err
	}
	fmt.Println("again:", receipt.State)
	balances, err := donations.Conservation(everyone)
	for _, b := range balances {
		fmt.Printf("%s %s: %v minted, %v in bags, %v in warehouses, conserved: %v\n", b.Tenant, b.Item, b.Minted, b.Bags, b.Warehouses, b.Conserved())
	}
	return err
}
