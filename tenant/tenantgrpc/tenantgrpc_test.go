package tenantgrpc_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/tenant/tenantgrpc"
)

// claim stands for a verified token: "token <tenant>".
func claim(ctx context.Context, method string) (tenant.ID, error) {
	if !strings.HasPrefix(method, "/grpc.health.v1.Health/") {
		return "", errors.New("another method: " + method)
	}
	token := strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), "")
	id, ok := strings.CutPrefix(token, "token ")
	if !ok {
		return "", errors.New("the secret of the signature check")
	}
	return tenant.ID(id), nil
}

// world is a server whose handlers note the tenant that they run for, and a client connection.
type world struct {
	seen  chan tenant.ID
	plain healthpb.HealthClient // sends what the test writes
	bound healthpb.HealthClient // through the client interceptors
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{seen: make(chan tenant.ID, 1)}
	note := func(ctx context.Context) {
		id, err := tenant.FromContext(ctx)
		if err != nil {
			t.Error(err)
		}
		w.seen <- id
	}
	srv := grpc.NewServer(
		grpc.ChainUnaryInterceptor(tenantgrpc.UnaryServer(claim), func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			note(ctx)
			return next(ctx, req)
		}),
		grpc.ChainStreamInterceptor(tenantgrpc.StreamServer(claim), func(s any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			note(ss.Context())
			return next(s, ss)
		}))
	healthpb.RegisterHealthServer(srv, health.NewServer())
	l := bufconn.Listen(1 << 16)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	dial := func(opts ...grpc.DialOption) healthpb.HealthClient {
		opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
		c, err := grpc.NewClient("passthrough:///bufconn", opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return healthpb.NewHealthClient(c)
	}
	w.plain = dial()
	w.bound = dial(grpc.WithChainUnaryInterceptor(tenantgrpc.UnaryClient()), grpc.WithChainStreamInterceptor(tenantgrpc.StreamClient()))
	return w
}

// calls makes one unary call and one stream.
func calls(ctx context.Context, c healthpb.HealthClient) map[string]func() error {
	return map[string]func() error{
		"unary": func() error {
			_, err := c.Check(ctx, &healthpb.HealthCheckRequest{})
			return err
		},
		"stream": func() error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			s, err := c.Watch(ctx, &healthpb.HealthCheckRequest{})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
	}
}

func TestServer_T45_MetadataAgainstClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		token    string
		metadata []string
		code     codes.Code
	}{
		"claim alone":      {"token a", nil, codes.OK},
		"both agree":       {"token a", []string{"a"}, codes.OK},
		"another tenant":   {"token a", []string{"b"}, codes.PermissionDenied},
		"system":           {"token a", []string{"__system__"}, codes.PermissionDenied},
		"case":             {"token a", []string{"A"}, codes.PermissionDenied},
		"empty":            {"token a", []string{""}, codes.PermissionDenied},
		"two values":       {"token a", []string{"a", "b"}, codes.PermissionDenied},
		"twice the same":   {"token a", []string{"a", "a"}, codes.PermissionDenied},
		"metadata alone":   {"", []string{"a"}, codes.Unauthenticated},
		"nothing":          {"", nil, codes.Unauthenticated},
		"ill-formed claim": {"token A", nil, codes.Unauthenticated},
		"empty claim":      {"token ", []string{"a"}, codes.Unauthenticated},
	} {
		md := metadata.Pairs("authorization", c.token)
		md.Append(tenant.CarrierKey, c.metadata...)
		for kind, call := range calls(metadata.NewOutgoingContext(t.Context(), md), w.plain) {
			err := call()
			if status.Code(err) != c.code {
				t.Errorf("%s, %s: %v, want %v", name, kind, err, c.code)
			}
			if err == nil {
				if id := <-w.seen; id != "a" {
					t.Errorf("%s, %s: runs for %q, want a", name, kind, id)
				}
			} else if strings.Contains(err.Error(), "secret") {
				t.Errorf("%s, %s: the status tells why the claim failed: %v", name, kind, err)
			}
		}
	}
	if len(w.seen) > 0 {
		t.Errorf("a refused call ran for %q", <-w.seen)
	}
}

func TestClient_SendsTheTenantOfTheContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	with := func(ctx context.Context, token string, carried ...string) context.Context {
		md := metadata.Pairs("authorization", token)
		md.Append(tenant.CarrierKey, carried...)
		return metadata.NewOutgoingContext(ctx, md)
	}
	a := tenant.NewContext(t.Context(), "a")
	for name, ctx := range map[string]context.Context{"once": with(a, "token a"), "already there": with(a, "token a", "a", "a")} {
		for kind, call := range calls(ctx, w.bound) {
			if err := call(); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
				continue
			}
			if id := <-w.seen; id != "a" {
				t.Errorf("%s, %s: runs for %q, want a", name, kind, id)
			}
		}
	}
	for kind, call := range calls(with(a, "token b"), w.bound) { // shows that it is sent
		if err := call(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s with a token of b: %v, want PermissionDenied", kind, err)
		}
	}
	for kind, call := range calls(a, w.bound) {
		if err := call(); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s without metadata of its own: %v, want Unauthenticated", kind, err)
		}
	}
	for kind, call := range calls(with(t.Context(), "token a", "a"), w.bound) {
		if err := call(); !errors.Is(err, tenant.ErrNoTenant) {
			t.Errorf("%s without a tenant: %v, want ErrNoTenant", kind, err)
		}
	}
	for kind, call := range calls(with(a, "token a", "b"), w.bound) {
		if err := call(); !errors.Is(err, tenant.ErrCarrierConflict) {
			t.Errorf("%s with another tenant: %v, want ErrCarrierConflict", kind, err)
		}
	}
}

func TestServer_NilClaimPanics(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(){
		"unary":  func() { tenantgrpc.UnaryServer(nil) },
		"stream": func() { tenantgrpc.StreamServer(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a nil claim does not panic", name)
				}
			}()
			build()
		}()
	}
}
