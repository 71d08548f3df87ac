// Package gatetest makes SQL statements at random, for tests of package gate and of what stands on it.
//
//	r := rand.New(rand.NewPCG(seed, 0))
//	text := gatetest.Statement(r, gate.MySQL)
//	text = gatetest.Mutate(r, text)
package gatetest
