package redisnotify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/dal/notify/redisnotify"
	"github.com/tenantdal/tenantdal/testutil"
)

func TestMain(m *testing.M) {
	// A server that all tests share runs until the process ends.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/tenantdal/tenantdal/testutil.(*MariaDB).watch"),
		goleak.IgnoreAnyFunction("github.com/tenantdal/tenantdal/testutil.(*MariaDB).launch.func1"))
}

// limit bounds each wait for what must come.
const limit = 20 * time.Second

// open returns a Notifier over the server, with a client of its own as another process would have, and closes both after the test.
func open(t *testing.T, r *testutil.Redis, cfg redisnotify.Config, options ...func(*redis.Options)) *redisnotify.Notifier {
	t.Helper()
	cfg.Client = client(t, r, options...)
	n, err := redisnotify.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return n
}

func client(t *testing.T, r *testutil.Redis, options ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Network: "unix", Addr: r.Socket(), ContextTimeoutEnabled: true}
	for _, f := range options {
		f(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Client.Close = %v", err)
		}
	})
	return c
}

// subscribe returns what comes on a topic.
func subscribe(t *testing.T, n notify.Notifier, topic string) (got chan notify.Notice, stop func()) {
	t.Helper()
	got = make(chan notify.Notice, 1000)
	stop, err := n.Subscribe(t.Context(), topic, func(m notify.Notice) { got <- m })
	if err != nil {
		t.Fatalf("Subscribe = %v", err)
	}
	return got, stop
}

// next waits for one notice.
func next(t *testing.T, got <-chan notify.Notice) notify.Notice {
	t.Helper()
	select {
	case m := <-got:
		return m
	case <-time.After(limit):
		t.Fatalf("no notice within %s", limit)
		return notify.Notice{}
	}
}

func publish(t *testing.T, n notify.Notifier, topic, payload string) {
	t.Helper()
	if err := n.Publish(t.Context(), topic, []byte(payload)); err != nil {
		t.Fatalf("Publish = %v", err)
	}
}

func TestNotifier_Conformance(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	t.Run("two processes", func(t *testing.T) {
		t.Parallel()
		testutil.CheckNotifier(t, open(t, r, redisnotify.Config{Prefix: "two:"}), open(t, r, redisnotify.Config{Prefix: "two:"}))
	})
	t.Run("one process", func(t *testing.T) {
		t.Parallel()
		n := open(t, r, redisnotify.Config{Prefix: "one:"})
		testutil.CheckNotifier(t, n, n)
	})
	t.Run("RESP2", func(t *testing.T) {
		t.Parallel()
		n := open(t, r, redisnotify.Config{Prefix: "resp2:"}, func(o *redis.Options) { o.Protocol = 2 })
		testutil.CheckNotifier(t, n, n)
	})
}

// A server that is killed loses notices; each subscription is told so once it is back, and goes on. Meanwhile calls fail, and do not hang.
func TestNotifier_ServerIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	n, other := open(t, r, redisnotify.Config{}), open(t, r, redisnotify.Config{})
	one, _ := subscribe(t, n, "one")
	two, _ := subscribe(t, n, "two")
	_, stopped := subscribe(t, n, "stopped")
	publish(t, other, "one", "before")
	if m := next(t, one); m.Lost || string(m.Payload) != "before" {
		t.Fatalf("before the kill came %+v", m)
	}
	for range 3 {
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, n := range []*redisnotify.Notifier{n, other} {
			if err := n.Publish(t.Context(), "one", nil); err == nil {
				t.Error("Publish to a server that is down = nil")
			}
		}
		var dial *net.OpError
		if stop, err := other.Subscribe(t.Context(), "one", func(notify.Notice) {}); !errors.As(err, &dial) || stop != nil {
			t.Errorf("Subscribe on a server that is down = %v, want the carrier's error", err)
		}
		stopped() // with a connection or without
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, got := range []chan notify.Notice{one, two} {
			if m := next(t, got); !m.Lost || len(m.Payload) > 0 {
				t.Fatalf("after the kill came %+v, want a loss", m)
			}
		}
		publish(t, other, "two", "after")
		if m := next(t, two); m.Lost || string(m.Payload) != "after" {
			t.Errorf("after the loss came %+v", m)
		}
	}
	if len(one) > 0 {
		t.Errorf("topic one has received %+v more", <-one)
	}
}

// The connection of subscriptions breaks alone.
func TestNotifier_ConnectionIsCut(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	n := open(t, r, redisnotify.Config{})
	got, _ := subscribe(t, n, "t")
	admin := client(t, r)
	if cut, err := admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result(); err != nil || cut != 1 {
		t.Fatalf("CLIENT KILL = %d, %v, want the one connection", cut, err)
	}
	if m := next(t, got); !m.Lost {
		t.Errorf("after the cut came %+v, want a loss", m)
	}
	publish(t, n, "t", "x")
	if m := next(t, got); string(m.Payload) != "x" {
		t.Errorf("after the loss came %+v", m)
	}
}

// records takes the logger's messages.
type records chan string

func (r records) Write(line []byte) (int, error) {
	r <- string(line)
	return len(line), nil
}

func (r records) await(t *testing.T, part string) {
	t.Helper()
	late := time.After(limit)
	for {
		select {
		case line := <-r:
			if strings.Contains(line, part) {
				return
			}
		case <-late:
			t.Fatalf("nothing was logged with %q within %s", part, limit)
		}
	}
}

// Silence alone breaks nothing: the server answers when it is asked.
func TestNotifier_QuietConnectionIsKept(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	var pings atomic.Int64
	asked := make(chan struct{}, 100)
	n := open(t, r, redisnotify.Config{HealthCheck: 500 * time.Millisecond}, func(o *redis.Options) {
		o.Dialer = dialer(func(b []byte) bool {
			if bytes.Contains(b, []byte("ping")) {
				pings.Add(1)
				select {
				case asked <- struct{}{}:
				default:
				}
			}
			return false
		})
	})
	got, _ := subscribe(t, n, "t")
	for range 2 {
		<-asked
	}
	publish(t, n, "t", "x")
	if m := next(t, got); m.Lost || string(m.Payload) != "x" {
		t.Errorf("after %d questions came %+v", pings.Load(), m)
	}
}

// dialer makes connections that lose every answer after a write that cut is true for.
func dialer(cut func(written []byte) bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &cutConn{Conn: conn, cut: cut}, nil
	}
}

type cutConn struct {
	net.Conn
	cut  func([]byte) bool
	lost atomic.Bool
	over atomic.Bool // the answer was read and thrown away: the server has done what was asked
}

func (c *cutConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if c.cut(b) {
		c.lost.Store(true)
	}
	return n, err
}

func (c *cutConn) Read(b []byte) (int, error) {
	if c.lost.Load() && c.over.Swap(true) {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b)
	if err == nil && c.lost.Load() {
		return 0, io.EOF
	}
	return n, err
}

// An answer that is lost leaves open whether the notice was delivered. It is not sent again.
func TestNotifier_PublishIsNotRepeated(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	var sent atomic.Int64
	lossy := open(t, r, redisnotify.Config{}, func(o *redis.Options) {
		o.MaxRetries = 3
		o.Dialer = dialer(func(b []byte) bool {
			publish := bytes.Contains(b, []byte("publish"))
			if publish {
				sent.Add(1)
			}
			return publish
		})
	})
	n := open(t, r, redisnotify.Config{})
	got, _ := subscribe(t, n, "t")
	if err := lossy.Publish(t.Context(), "t", []byte("once")); !errors.Is(err, io.EOF) {
		t.Errorf("Publish whose answer is lost = %v, want io.EOF", err)
	}
	publish(t, n, "t", "mark")
	for _, want := range []string{"once", "mark"} {
		if m := next(t, got); string(m.Payload) != want {
			t.Errorf("received %+v, want %s", m, want)
		}
	}
	if sent.Load() != 1 {
		t.Errorf("PUBLISH was sent %d times", sent.Load())
	}
}

// A receiver that hangs holds up no publisher and no other receiver; what it lost is told once it goes on, after what had waited.
func TestNotifier_SlowReceiverIsToldOfTheLoss(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	n := open(t, r, redisnotify.Config{Queue: 4})
	const sent = 50
	hang, inside := make(chan struct{}), make(chan struct{})
	got := make(chan notify.Notice, sent+1)
	if _, err := n.Subscribe(t.Context(), "t", func(m notify.Notice) {
		if string(m.Payload) == "0" {
			close(inside)
		}
		<-hang
		got <- m
	}); err != nil {
		t.Fatal(err)
	}
	quick := open(t, r, redisnotify.Config{Queue: sent})
	all, _ := subscribe(t, quick, "t")
	publish(t, n, "t", "0")
	<-inside
	for i := 1; i < sent; i++ {
		publish(t, n, "t", fmt.Sprint(i))
	}
	done, _ := subscribe(t, n, "done") // on the same connection: what was sent before has been dealt with
	publish(t, n, "done", "")
	next(t, done)
	close(hang)
	for i := range 5 { // one in hand, four in the queue
		if m := next(t, got); m.Lost || string(m.Payload) != fmt.Sprint(i) {
			t.Errorf("notice %d = %+v", i, m)
		}
	}
	if m := next(t, got); !m.Lost || len(m.Payload) > 0 {
		t.Errorf("after the queue came %+v, want a loss", m)
	}
	for i := range sent {
		if m := next(t, all); m.Lost || string(m.Payload) != fmt.Sprint(i) {
			t.Errorf("the quick receiver's notice %d = %+v", i, m)
		}
	}
	publish(t, n, "t", "more")
	if m := next(t, got); string(m.Payload) != "more" {
		t.Errorf("after the loss came %+v", m)
	}
}

func TestNotifier_PrefixKeepsServicesApart(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	a, b := open(t, r, redisnotify.Config{Prefix: "a:"}), open(t, r, redisnotify.Config{})
	ofA, _ := subscribe(t, a, "t")
	ofB, _ := subscribe(t, b, "t")
	publish(t, a, "t", "from a")
	publish(t, b, "t", "from b")
	if m := next(t, ofA); string(m.Payload) != "from a" {
		t.Errorf("a received %+v", m)
	}
	if m := next(t, ofB); string(m.Payload) != "from b" {
		t.Errorf("b received %+v", m)
	}
	// Somebody else on the default channel, with more than a notice may hold.
	stranger := client(t, r)
	if err := stranger.Publish(t.Context(), "tenantdal:t", make([]byte, notify.MaxPayload+1)).Err(); err != nil {
		t.Fatal(err)
	}
	if m := next(t, ofB); !m.Lost || len(m.Payload) > 0 {
		t.Errorf("a stranger's long notice came as %d bytes, lost %v, want a loss", len(m.Payload), m.Lost)
	}
	if len(ofA) > 0 {
		t.Errorf("a received %+v more", <-ofA)
	}
}

// Topics come and go while others stay; a topic that is wanted again at once is not lost.
func TestNotifier_StopBesideSubscribe(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	n := open(t, r, redisnotify.Config{})
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 50 {
				stopped := false // written and read by one goroutine after the other, if stop keeps its word: the race detector watches
				got := make(chan notify.Notice, 100)
				stop, err := n.Subscribe(t.Context(), fmt.Sprint("t", worker%4), func(m notify.Notice) {
					if stopped {
						t.Error("fn runs after stop")
					}
					got <- m
				})
				if err != nil {
					t.Error(err)
					return
				}
				want := fmt.Sprint(worker, "-", i)
				if err := n.Publish(t.Context(), fmt.Sprint("t", worker%4), []byte(want)); err != nil {
					t.Error(err)
				}
				for {
					if m := next(t, got); string(m.Payload) == want {
						break
					}
				}
				stop()
				stopped = true
			}
		})
	}
	wg.Wait()
}

// A call that gives up leaves nothing behind.
func TestNotifier_SubscribeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	hang := make(chan struct{})
	n := open(t, r, redisnotify.Config{}, func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			select {
			case <-hang:
				return new(net.Dialer).DialContext(ctx, network, address)
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, io.ErrNoProgress)
	defer cancel()
	stop, err := n.Subscribe(ctx, "t", func(m notify.Notice) { t.Errorf("a subscription that has failed received %+v", m) })
	if !errors.Is(err, io.ErrNoProgress) || stop != nil {
		t.Fatalf("Subscribe = %v, want the cause of its context", err)
	}
	close(hang)
	got, _ := subscribe(t, n, "t")
	publish(t, n, "t", "x")
	if m := next(t, got); string(m.Payload) != "x" {
		t.Errorf("received %+v", m)
	}
}

func TestNotifier_Close(t *testing.T) {
	t.Parallel()
	r := testutil.StartRedis(t)
	n := open(t, r, redisnotify.Config{})
	hang, inside := make(chan struct{}), make(chan struct{})
	calls := 0
	stop, err := n.Subscribe(t.Context(), "t", func(notify.Notice) {
		calls++
		close(inside)
		<-hang
	})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, n, "t", "1")
	publish(t, n, "t", "2")
	<-inside
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	if err := n.Close(ended); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Close beside a callback that hangs = %v, want the cause of its context", err)
	}
	close(hang)
	for range 2 {
		if err := n.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	stop()
	if calls != 1 {
		t.Errorf("fn was called %d times, want none after Close", calls)
	}
	if err := n.Publish(t.Context(), "t", nil); !errors.Is(err, notify.ErrClosed) {
		t.Errorf("Publish after Close = %v, want ErrClosed", err)
	}
	if stop, err := n.Subscribe(t.Context(), "t", func(notify.Notice) {}); !errors.Is(err, notify.ErrClosed) || stop != nil {
		t.Errorf("Subscribe after Close = %v, want ErrClosed", err)
	}
}

// Close ends calls that wait, and needs no server.
func TestNotifier_CloseWhileNothingAnswers(t *testing.T) {
	t.Parallel()
	dialing := make(chan struct{})
	var once sync.Once
	c := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
		once.Do(func() { close(dialing) })
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}})
	defer c.Close()
	n, err := redisnotify.New(redisnotify.Config{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := n.Subscribe(t.Context(), "t", func(notify.Notice) {})
		result <- err
	}()
	<-dialing
	if err := n.Close(t.Context()); err != nil {
		t.Errorf("Close = %v", err)
	}
	if err := <-result; !errors.Is(err, notify.ErrClosed) {
		t.Errorf("Subscribe while the Notifier is closed = %v, want ErrClosed", err)
	}
}

// Before the first subscription and after the last there is no goroutine and no connection. The test is not parallel, so that it sees its own alone.
func TestNotifier_NothingRunsWithoutSubscriptions(t *testing.T) {
	r := testutil.StartRedis(t)
	admin := client(t, r)
	connected := func() string {
		t.Helper()
		list, err := admin.Do(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	c := client(t, r)
	connected()
	before := goleak.IgnoreCurrent()
	n, err := redisnotify.New(redisnotify.Config{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Publish(t.Context(), "t", nil); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
	for range 3 {
		_, first := subscribe(t, n, "t")
		_, second := subscribe(t, n, "u")
		if list := connected(); strings.Count(list, "\n") != 1 {
			t.Errorf("two subscriptions have the connections %q, want one", list)
		}
		first()
		second()
		goleak.VerifyNone(t, before)                            // waits a moment
		for late := time.Now().Add(limit); connected() != ""; { // the server sees the end a moment later
			if time.Now().After(late) {
				t.Fatalf("without subscriptions there are the connections %q", connected())
			}
		}
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{})
	defer c.Close()
	for field, cfg := range map[string]redisnotify.Config{
		"Config.Client":      {},
		"Config.Prefix":      {Client: c, Prefix: "two words"},
		"64 bytes":           {Client: c, Prefix: strings.Repeat("p", 65)},
		"Config.Queue":       {Client: c, Queue: -1},
		"Config.HealthCheck": {Client: c, HealthCheck: -1},
	} {
		if n, err := redisnotify.New(cfg); err == nil || !strings.Contains(err.Error(), field) || n != nil {
			t.Errorf("New(%+v) = %v, want an error that names %s", cfg, err, field)
		}
	}
}
