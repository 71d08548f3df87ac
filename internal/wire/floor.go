package wire

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tenantdal/tenantdal/tenant"
)

// The floor under the scope, where the database has one: PostgreSQL's row-level security compares each row's tenant_id with a setting that lives as long
// as one transaction. The policies are made by migrations/schema and compared by package dal at start; this file sets the setting.
const (
	// TenantSetting is the setting that the policies read. It is set by a bound set_config(..., true) right after BEGIN, so that it ends with its
	// transaction: never by SET, which would stay on the connection for its next borrower.
	TenantSetting = "tenantdal.tenant"

	// TenantPolicyName is the policy of the application role.
	TenantPolicyName = "tdal_tenant"
	// SystemPolicyName is the policy of the system role.
	SystemPolicyName = "tdal_system"

	// TenantPolicy is the condition of the application role's policy, for reads and for writes. After its transaction the setting is an empty text and
	// not NULL, so both mean no tenant; a comparison with NULL admits no row.
	TenantPolicy = "tenant_id = NULLIF(current_setting('" + TenantSetting + "', true), '')"
	// SystemPolicy is the condition of the system role's policy.
	SystemPolicy = "true"

	setTenant = "SELECT set_config('" + TenantSetting + "', $1, true)"
)

// IsTenantPolicy reports whether text is how the server prints [TenantPolicy] for a tenant_id of type text or varchar.
func IsTenantPolicy(text string) bool {
	const setting = "NULLIF(current_setting('" + TenantSetting + "'::text, true), ''::text)"
	return text == "(tenant_id = "+setting+")" || text == "((tenant_id)::text = "+setting+")"
}

// ownerOf returns the tenant that the floor is to be set to for a statement under m, or "" for none: without one the policies admit no row.
func (c *pgConn) ownerOf(m *Mark) (tenant.ID, error) {
	if !c.owner.floor || m == nil || m.Tenant == "" {
		return "", nil
	}
	if err := m.Tenant.Validate(); err != nil {
		return "", err
	}
	return m.Tenant, nil
}

// begin opens a transaction and sets the floor in it, in one round trip. When it returns an error no transaction is open, or the connection is broken.
func (c *pgConn) begin(ctx context.Context, text string, id tenant.ID) error {
	c.tenant, c.moved, c.cause = "", false, nil
	if id == "" {
		_, err := c.simple(ctx, text)
		return err
	}
	p := c.inner.Conn().PgConn().StartPipeline(ctx)
	p.SendQueryParams(text, nil, nil, nil, nil)
	p.SendQueryParams(setTenant, [][]byte{[]byte(id)}, nil, nil, nil)
	var err error
	if err = p.Sync(); err == nil {
		for {
			res, rerr := p.GetResults()
			if rerr != nil && err == nil {
				err = rerr
			}
			if rerr != nil && SQLState(rerr) == "" || res == nil && rerr == nil {
				break
			}
			if r, ok := res.(*pgconn.ResultReader); ok {
				if _, rerr := r.Close(); rerr != nil && err == nil {
					err = rerr
				}
			}
		}
	}
	if cerr := p.Close(); err == nil {
		err = cerr
	}
	c.owner.floors.Add(1)
	if err != nil {
		if pgconn.SafeToRetry(err) {
			return driver.ErrBadConn
		}
		_ = c.rollback()
		return fmt.Errorf("wire: set the floor: %w", err)
	}
	c.tenant = id
	return nil
}

// settle sets the floor of the open transaction to another tenant's, for a transaction of the library's own that works for several.
func (c *pgConn) settle(ctx context.Context, m *Mark) error {
	id, err := c.ownerOf(m)
	if err != nil || id == "" || id == c.tenant {
		return err
	}
	c.owner.floors.Add(1)
	if _, err := c.inner.Conn().PgConn().ExecParams(ctx, setTenant, [][]byte{[]byte(id)}, nil, nil, nil).Close(); err != nil {
		c.note(err)
		return fmt.Errorf("wire: set the floor: %w", err)
	}
	c.tenant, c.moved = id, true
	return nil
}
