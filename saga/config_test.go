package saga_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tenantdal/tenantdal/saga"
)

func TestConfig_WithDefaults(t *testing.T) {
	t.Parallel()
	c := saga.Config{}.WithDefaults()
	if err := c.Validate(); err != nil {
		t.Errorf("Validate of the defaults: %v", err)
	}
	if c.VoidAfter != 30*time.Second {
		t.Errorf("VoidAfter = %v, want 30s", c.VoidAfter)
	}
	if got := (saga.Config{VoidAfter: saga.Never}).WithDefaults().VoidAfter; got != saga.Never {
		t.Errorf("VoidAfter Never became %v", got)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]saga.Config{
		"VoidAfter":   {VoidAfter: -2},
		"Handover":    {Handover: time.Microsecond},
		"LeaseFor":    {LeaseFor: -1},
		"StepTimeout": {StepTimeout: time.Minute},
		"PollMin":     {PollMin: time.Minute},
		"RetryMin":    {RetryMin: time.Hour},
		"PlacesEvery": {PlacesEvery: -1},
		"Batch":       {Batch: 65},
		"PerTenant":   {PerTenant: -1},
		"Workers":     {Workers: -1},
		"QueueSize":   {QueueSize: -1},
		"MaxAttempts": {MaxAttempts: -1},
		"Retries":     {Retries: -1},
	} {
		err := c.WithDefaults().Validate()
		if err == nil || !strings.Contains(err.Error(), "Config."+field) {
			t.Errorf("Validate of a bad %s = %v, want an error that names it", field, err)
		}
	}
	err := saga.Config{Batch: -1, Retries: -1}.WithDefaults().Validate()
	if err == nil || !strings.Contains(err.Error(), "Batch") || !strings.Contains(err.Error(), "Retries") {
		t.Errorf("Validate of two bad fields = %v, want both", err)
	}
}
