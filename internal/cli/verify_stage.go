package cli

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
)

// stage is the target of attacks: scratch tenants, or an existing tenant.
type stage interface {
	Needs() []verify.Right
	Attacks() []attack.Attack
	Absent(context.Context, client.Client) (string, error)
	Run(context.Context, *rest.Config, *runtime.Scheme, func(attack.Attack) bool, func(verify.Result)) ([]verify.Result, error)
}

// newStage reads the declared objects of the cluster, which determine the attacks, and returns
// their estate, or nil if no valid Platform is declared.
func (a *app) newStage(ctx context.Context, o verifyOptions) (stage, *estate.Estate, error) {
	c, err := a.newClient()
	if err != nil {
		return nil, nil, toFailure(err)
	}
	live, err := a.readSubject(ctx, c, &o.files)
	if apierrors.IsForbidden(err) {
		return nil, nil, failuref("nothing was tried: you may not read the declared objects (%w): a cluster admin can run the command (see docs/reference/rights.md)", err)
	}
	if err != nil {
		return nil, nil, err
	}
	if o.tenant == "" {
		scratch, err := verify.NewScratch(live.Platforms[0])
		if err != nil {
			return nil, nil, toFailure(err)
		}
		if err := checkRights(ctx, c, &live.Platforms[0], scratch); err != nil {
			return nil, nil, err
		}
		if err := checkWallsExist(ctx, c, scratch, o); err != nil {
			return nil, nil, err
		}
		a.sweepScratch(ctx, c, scratch, live.Tenants)
		e, _ := estate.Build(live)
		if e != nil {
			scratch.AddConnections(e.Platform.Connections)
		}
		return scratch, e, nil
	}
	e, problems := estate.Build(live)
	if e == nil {
		return nil, nil, toFailure(problems)
	}
	tenant := e.FindTenant(o.tenant)
	if tenant == nil {
		return nil, nil, fmt.Errorf("--tenant %s: there is no such tenant, or it is not valid: `croft status` lists them", o.tenant)
	}
	if tenant.Freeze != nil {
		return nil, nil, failuref("--tenant %s: nothing was tried: %s; the freeze refuses every attack before its own rule does: "+
			"run the command without --tenant, or after the freeze", o.tenant, tenant.FreezeNotice)
	}
	existing := verify.NewExisting(e, tenant)
	if err := checkRights(ctx, c, &live.Platforms[0], existing); err != nil {
		return nil, nil, err
	}
	return existing, e, checkWallsExist(ctx, c, existing, o)
}

// checkWallsExist returns an error if the cluster has no walls to test, as before an operator has
// run. With --record it records a breach: an earlier result must not remain the last one.
func checkWallsExist(ctx context.Context, c client.Client, s stage, o verifyOptions) error {
	absent, err := s.Absent(ctx, c)
	if err != nil {
		return failuref("reading croft's policies: %w", explainUnreachable(err))
	}
	if absent == "" {
		return nil
	}
	if o.record {
		if err := recordResults(ctx, c, []verify.Result{{Name: absent, Result: verify.Breached}}, 0); err != nil {
			return err
		}
	}
	if o.files.isRendered() {
		return failuref("nothing was tried: %s: `croft render -f FILE | kubectl apply --server-side -f -` applies them", absent)
	}
	beat, err := heartbeat.Read(ctx, c)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	if now := time.Now(); !beat.IsBelievable(now) {
		return failuref("nothing was tried: %s; %s: %s", absent, beat.Describe(now), fixOperator)
	}
	return failuref("nothing was tried: %s: `croft status` reports why the operator has not created them", absent)
}
