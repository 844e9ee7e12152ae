package adopt

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// RecordState records the current labels of the namespaces, and the objects that croft will overwrite,
// before anything is changed. An earlier record is kept: it is closer to the original state.
func (a *Adoption) RecordState(ctx context.Context, p *Plan) error {
	r, err := a.readRecord(ctx)
	if err != nil {
		return err
	}
	live, err := a.readNamespaces(ctx)
	if err != nil {
		return err
	}
	for _, o := range a.buildWalls() {
		desired, ok := o.(*corev1.Namespace)
		if !ok {
			continue
		}
		namespace, there := live[desired.Name]
		_, noted := r.Namespaces[desired.Name]
		if !there || noted || namespace.Labels[v1alpha1.TenantLabel] == a.tenant.Name {
			continue
		}
		if a.isKept(namespace) {
			if err := a.recordKept(ctx, r, namespace); err != nil {
				return err
			}
			continue
		}
		marks := Marks{}
		for key := range desired.Labels {
			if value, ok := namespace.Labels[key]; ok {
				if marks.Labels == nil {
					marks.Labels = map[string]string{}
				}
				marks.Labels[key] = value
			}
		}
		r.Namespaces[desired.Name] = marks
	}
	for _, b := range p.Overlaps {
		if b.Overwritten {
			r.addObject(b.object)
		}
	}
	return r.save(ctx, a.applier)
}

func (a *Adoption) readRecord(ctx context.Context) (*Record, error) {
	r, err := ReadRecord(ctx, a.client, a.tenant.Name)
	if err != nil {
		return nil, err
	}
	if r == nil {
		r = &Record{Tenant: a.tenant.Name}
	}
	if r.Namespaces == nil {
		r.Namespaces = map[string]Marks{}
	}
	return r, nil
}

// Permit sets the annotation that permits the tenant to adopt its existing namespaces. Only a
// platform admin can.
func (a *Adoption) Permit(ctx context.Context) error {
	live, err := a.readNamespaces(ctx)
	if err != nil {
		return err
	}
	for _, name := range a.tenant.Namespaces {
		namespace, there := live[name]
		if !there || namespace.Labels[v1alpha1.TenantLabel] == a.tenant.Name || namespace.Annotations[v1alpha1.AdoptAnnotation] == a.tenant.Name {
			continue
		}
		if err := a.applier.MarkNamespace(ctx, name, nil, map[string]any{v1alpha1.AdoptAnnotation: a.tenant.Name}); err != nil {
			return err
		}
	}
	return nil
}

// Remove deletes the objects that the walls replace, after recording them.
func (a *Adoption) Remove(ctx context.Context, p *Plan) error {
	r, err := a.readRecord(ctx)
	if err != nil {
		return err
	}
	going := p.ListReplaced()
	for _, b := range going {
		if b.annotation == "" {
			r.addObject(b.object)
			continue
		}
		name := b.object.GetName()
		var live corev1.Namespace
		if err := a.client.Get(ctx, client.ObjectKey{Name: name}, &live); err != nil {
			return err
		}
		marks := r.Namespaces[name]
		if value, ok := live.Annotations[b.annotation]; ok {
			marks.Annotations = map[string]string{b.annotation: value}
		}
		r.Namespaces[name] = marks
	}
	if err := r.save(ctx, a.applier); err != nil {
		return err
	}
	var errs []error
	for _, b := range going {
		if b.annotation != "" {
			errs = append(errs, a.applier.MarkNamespace(ctx, b.object.GetName(), nil, map[string]any{b.annotation: nil}))
			continue
		}
		errs = append(errs, a.applier.Remove(ctx, b.object))
	}
	return errors.Join(errs...)
}
