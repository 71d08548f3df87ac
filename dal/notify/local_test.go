package notify_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tenantdal/tenantdal/dal/notify"
	"github.com/tenantdal/tenantdal/testutil"
)

func TestLocal_Conformance(t *testing.T) {
	t.Parallel()
	n := notify.NewLocal()
	testutil.CheckNotifier(t, n, n)
}

// A receiver that hangs holds up no publisher; what it lost is told once it goes on, after what had waited.
func TestLocal_SlowReceiverIsToldOfTheLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := notify.NewLocal()
		hang := make(chan struct{})
		var got []notify.Notice
		stop, err := n.Subscribe(t.Context(), "t", func(m notify.Notice) {
			<-hang
			got = append(got, m)
		})
		if err != nil {
			t.Fatal(err)
		}
		const sent = 1000
		for i := range sent {
			if err := n.Publish(t.Context(), "t", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				synctest.Wait() // the receiver has it in hand, and takes no other
			}
		}
		close(hang)
		synctest.Wait()
		stop()
		if len(got) >= sent || !got[len(got)-1].Lost {
			t.Fatalf("received %d of %d, the last %+v, want a loss at the end", len(got), sent, got[len(got)-1])
		}
		for i, m := range got[:len(got)-1] {
			if m.Lost || string(m.Payload) != fmt.Sprint(i) {
				t.Errorf("notice %d = %+v", i, m)
			}
		}
	})
}

func TestLocal_StopBesidePublish(t *testing.T) {
	t.Parallel()
	n := notify.NewLocal()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				stopped := false // written and read by one goroutine after the other, if stop keeps its word: the race detector watches
				stop, err := n.Subscribe(t.Context(), "t", func(notify.Notice) {
					if stopped {
						t.Error("fn runs after stop")
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
				if err := n.Publish(t.Context(), "t", []byte("x")); err != nil {
					t.Error(err)
				}
				stop()
				stopped = true
			}
		})
	}
	wg.Wait()
}
