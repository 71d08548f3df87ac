package tenanthttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tenantdal/tenantdal/tenant"
	"github.com/tenantdal/tenantdal/tenant/tenanthttp"
)

// claim stands for a verified token: "token <tenant>".
func claim(r *http.Request) (tenant.ID, error) {
	id, ok := strings.CutPrefix(r.Header.Get("Authorization"), "token ")
	if !ok {
		return "", errors.New("the secret of the signature check")
	}
	return tenant.ID(id), nil
}

type server struct {
	*httptest.Server
	refused chan error
}

func newServer(t *testing.T, opts ...tenanthttp.Option) server {
	t.Helper()
	refused := make(chan error, 1)
	opts = append(opts, tenanthttp.OnRefusal(func(_ *http.Request, why error) { refused <- why }))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := tenant.FromContext(r.Context())
		_, _ = io.WriteString(w, string(id))
		if err != nil {
			t.Error(err)
		}
	})
	// What a framework bound before, or forgot, is replaced.
	before := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(tenant.NewContext(r.Context(), "zz")))
		})
	}
	s := httptest.NewServer(before(tenanthttp.Middleware(claim, opts...)(h)))
	t.Cleanup(s.Close)
	return server{s, refused}
}

func (s server) ask(t *testing.T, authorization string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	r.Header["tenantdal-TENANT"] = headers // any case on the wire
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

func TestMiddleware_T45_HeaderAgainstClaim(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, c := range map[string]struct {
		token   string
		headers []string
		status  int
		body    string
		why     error
	}{
		"claim alone":      {"token a", nil, 200, "a", nil},
		"both agree":       {"token a", []string{"a"}, 200, "a", nil},
		"another tenant":   {"token a", []string{"b"}, 403, "Forbidden", tenanthttp.ErrMismatch},
		"system":           {"token a", []string{"__system__"}, 403, "Forbidden", tenanthttp.ErrAmbiguous},
		"case":             {"token a", []string{"A"}, 403, "Forbidden", tenanthttp.ErrAmbiguous},
		"empty":            {"token a", []string{""}, 403, "Forbidden", tenanthttp.ErrAmbiguous},
		"a list":           {"token a", []string{"a, b"}, 403, "Forbidden", tenanthttp.ErrAmbiguous},
		"two values":       {"token a", []string{"a", "b"}, 403, "Forbidden", tenanthttp.ErrAmbiguous},
		"twice the same":   {"token a", []string{"a", "a"}, 403, "Forbidden", tenanthttp.ErrAmbiguous},
		"header alone":     {"", []string{"a"}, 401, "Unauthorized", tenanthttp.ErrNoClaim},
		"nothing":          {"", nil, 401, "Unauthorized", tenanthttp.ErrNoClaim},
		"ill-formed claim": {"token A", nil, 401, "Unauthorized", tenanthttp.ErrNoClaim},
		"empty claim":      {"token ", []string{"a"}, 401, "Unauthorized", tenanthttp.ErrNoClaim},
	} {
		status, body := s.ask(t, c.token, c.headers...)
		if status != c.status || body != c.body {
			t.Errorf("%s: %d %q, want %d %q", name, status, body, c.status, c.body)
		}
		if c.why == nil {
			continue
		}
		if why := <-s.refused; !errors.Is(why, c.why) {
			t.Errorf("%s: refused by %v, want %v", name, why, c.why)
		}
	}
}

func TestMiddleware_RequireHeader(t *testing.T) {
	t.Parallel()
	s := newServer(t, tenanthttp.RequireHeader())
	if status, _ := s.ask(t, "token a"); status != 403 {
		t.Errorf("without the header: %d, want 403", status)
	}
	if status, body := s.ask(t, "token a", "a"); status != 200 || body != "a" {
		t.Errorf("with the header: %d %q", status, body)
	}
}

func TestMiddleware_NilClaimPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Middleware(nil) does not panic")
		}
	}()
	tenanthttp.Middleware(nil)
}

func TestTransport(t *testing.T) {
	t.Parallel()
	s := newServer(t, tenanthttp.RequireHeader())
	client := &http.Client{Transport: &tenanthttp.Transport{Base: s.Client().Transport}}
	send := func(ctx context.Context, header string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "token a")
		if header != "" {
			r.Header.Set(tenanthttp.Header, header)
		}
		return client.Do(r)
	}
	a := tenant.NewContext(t.Context(), "a")
	for _, header := range []string{"", "a"} {
		resp, err := send(a, header)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || string(body) != "a" {
			t.Errorf("header %q: %d %q, %v", header, resp.StatusCode, body, err)
		}
	}
	if _, err := send(t.Context(), "a"); !errors.Is(err, tenant.ErrNoTenant) {
		t.Errorf("without a tenant: %v, want ErrNoTenant", err)
	}
	if _, err := send(a, "b"); !errors.Is(err, tenant.ErrCarrierConflict) {
		t.Errorf("another header: %v, want ErrCarrierConflict", err)
	}
	bare := (&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: s.Listener.Addr().String()}}).WithContext(a) // with no headers at all
	resp, err := client.Transport.RoundTrip(bare)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || bare.Header != nil {
		t.Fatalf("a request without headers: %v, %v, headers %v", resp, err, bare.Header)
	}
	_ = resp.Body.Close()
}
