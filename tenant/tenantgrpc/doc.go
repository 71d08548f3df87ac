// Package tenantgrpc puts the tenant of a call into its context, for gRPC, and sends it on.
//
//	srv := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(authenticate, tenantgrpc.UnaryServer(claim)),
//		grpc.ChainStreamInterceptor(authenticateStream, tenantgrpc.StreamServer(claim)))
//
//	conn, err := grpc.NewClient(target,
//		grpc.WithChainUnaryInterceptor(tenantgrpc.UnaryClient()),
//		grpc.WithChainStreamInterceptor(tenantgrpc.StreamClient()))
//
// The tenant is the one that claim verified. The metadata under [tenant.CarrierKey] says which tenant the caller means; it is compared with the claim, and
// never taken at its word: whoever makes a call can send any metadata.
package tenantgrpc
