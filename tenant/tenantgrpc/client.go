package tenantgrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tenantdal/tenantdal/tenant"
)

// UnaryClient sends the tenant of each call's context in the metadata, under [tenant.CarrierKey].
//
// A call whose context has no tenant fails with the error of [tenant.FromContext], and one whose outgoing metadata names another tenant with a
// [*tenant.CarrierConflictError], before anything is sent.
func UnaryClient() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, err := carry(ctx)
		if err != nil {
			return err
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}

// StreamClient is [UnaryClient] for streams.
func StreamClient() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := carry(ctx)
		if err != nil {
			return nil, err
		}
		return open(ctx, desc, cc, method, opts...)
	}
}

func carry(ctx context.Context) (context.Context, error) {
	id, err := tenant.FromContext(ctx)
	if err != nil {
		return nil, err
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	for _, v := range md.Get(tenant.CarrierKey) {
		if v != string(id) {
			return nil, &tenant.CarrierConflictError{Key: tenant.CarrierKey, Carrier: v, Want: string(id)}
		}
	}
	if md == nil {
		md = metadata.MD{}
	}
	md.Set(tenant.CarrierKey, string(id))
	return metadata.NewOutgoingContext(ctx, md), nil
}
