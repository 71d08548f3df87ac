// Package tenanthttp puts the tenant of a request into its context, for net/http.
//
//	h := tenanthttp.Middleware(claim)(mux)
//
//	func claim(r *http.Request) (tenant.ID, error) { // what the token proved
//		return tokens.Tenant(r.Context())
//	}
//
// The tenant is the one that claim verified. The header [Header] says which tenant the caller means; it is compared with the claim, and never taken at
// its word: whoever sends a request can write any header.
package tenanthttp
