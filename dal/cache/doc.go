// Package cache keeps rows of declared models that many servers read and few change, such as the members of a guild.
//
//	guilds, err := cache.New[Guild, int64](store, cache.Config{Notifier: notifier})
//	err = guilds.Start(ctx)
//	defer guilds.Close(ctx)
//	...
//	g, err := guilds.Get(ctx, dal.Key("guild", guildID), id) // of the context's tenant
//
// What is kept is found by tenant, place, topology epoch, versions of the schema, shard key and primary key, so that no tenant can meet another's row, nor one
// of an earlier schema. A row is loaded through the store, by one caller for all that wait for it.
//
// A transaction or statement of this process that writes the model's table drops the tenant's rows when it is committed, before its caller hears of it: a Get that begins
// after a write has returned never gives an older row, even if the row was being loaded meanwhile. Other processes hear of it through a [notify.Notifier],
// some milliseconds later. A notice may be lost, so a row is never given for longer than Config.TTL. Neither sees what the database changes by itself,
// by a cascade or a trigger, nor a write whose answer was lost and that is carried out later: TTL bounds these as well.
//
// Inside [dal.Store.Transaction] nothing is taken from the cache and nothing is put into it.
package cache
