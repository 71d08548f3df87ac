package tenantgrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tenantdal/tenantdal/tenant"
)

// Claim returns the tenant that the call proved it may act for, from a token or a client certificate that was verified. method is the full method, such as
// "/package.Service/Method". It must not read [tenant.CarrierKey] from the metadata.
type Claim func(ctx context.Context, method string) (tenant.ID, error)

// UnaryServer runs the handler under a context of exactly the claimed tenant: a tenant, system scope or shard that the context had is replaced. A call
// without [tenant.CarrierKey] in its metadata passes by the claim alone.
//
// A call that nothing proves a tenant for is [codes.Unauthenticated]; one whose metadata names another tenant, no tenant or several is
// [codes.PermissionDenied], and the handler does not run. The status names no tenant and holds nothing of the claim function's error, so that nobody learns
// which exist. UnaryServer panics when claim is nil.
func UnaryServer(claim Claim) grpc.UnaryServerInterceptor {
	check(claim)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		ctx, err := verified(ctx, info.FullMethod, claim)
		if err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// StreamServer is [UnaryServer] for streams: the tenant is compared once, when the stream begins, and holds for all its messages.
func StreamServer(claim Claim) grpc.StreamServerInterceptor {
	check(claim)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx, err := verified(ss.Context(), info.FullMethod, claim)
		if err != nil {
			return err
		}
		return next(srv, &boundStream{ServerStream: ss, ctx: ctx})
	}
}

// boundStream is a stream under the tenant's context.
type boundStream struct {
	grpc.ServerStream
	ctx context.Context // gRPC hands a stream's context out by a method
}

// Context returns the context of the tenant.
func (s *boundStream) Context() context.Context { return s.ctx }

func check(claim Claim) {
	if claim == nil {
		panic("tenantgrpc: the claim function is nil: without it no tenant is proved")
	}
}

func verified(ctx context.Context, method string, claim Claim) (context.Context, error) {
	id, err := claim(ctx, method)
	if err != nil || id.Validate() != nil {
		return nil, status.Error(codes.Unauthenticated, "no verified tenant")
	}
	// Two values are refused even if they are equal: a proxy in between may have read one, and may have added it.
	switch values := metadata.ValueFromIncomingContext(ctx, tenant.CarrierKey); {
	case len(values) == 0:
	case len(values) > 1:
		return nil, status.Error(codes.PermissionDenied, "the metadata does not name one tenant")
	case values[0] != string(id):
		return nil, status.Error(codes.PermissionDenied, "the metadata does not name the tenant of the call")
	}
	return tenant.NewContext(ctx, id), nil
}
