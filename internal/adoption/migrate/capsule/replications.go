package capsule

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/internal/adoption/migrate/copies"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/network"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/wording"
)

// replication is a GlobalTenantResource or a TenantResource, which copies objects into namespaces of tenants.
type replication struct {
	*source.Object
	// tenants are the tenants that it selects.
	tenants []string
	// every means that it selects tenants to come, too.
	every bool
}

// copied is an object that a replication copies.
type copied struct {
	// at is the field that lists the object, and content the object: the same field, or an object of the input.
	at, content source.Field
	// resource is the entry of the replication that contains the field.
	resource source.Field
}

// remedy is the advice for objects that croft.yaml cannot contain.
const remedy = "Capsule deletes its copies with its Tenant: write these objects into the tenants' namespaces yourself"

// grantingKinds are the kinds whose copies do not restrict tenants.
var grantingKinds = []string{"ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding"}

func listReplications(d *draft.Draft) []*source.Object {
	return append(d.List(draft.CapsuleGroup, "GlobalTenantResource"), d.List(draft.CapsuleGroup, "TenantResource")...)
}

// newReplication returns a replication with its tenants, or the reason why they are unknown.
func newReplication(d *draft.Draft, o *source.Object) (*replication, string) {
	r := &replication{Object: o}
	if o.Kind == "TenantResource" {
		name := d.FindTenant(o.Namespace)
		if name == "" {
			return nil, "its namespace belongs to no tenant"
		}
		r.tenants = []string{name}
		return r, ""
	}
	if scope := o.At("spec", "scope").Text(); scope != "" && scope != "Namespace" {
		return nil, "with the scope " + scope + " it does not copy into every namespace"
	}
	selector, err := parseSelector(o.At("spec", "tenantSelector"))
	if err != nil {
		return nil, "its tenantSelector cannot be read: " + err.Error()
	}
	r.every = selector.Empty()
	for _, t := range d.List(draft.CapsuleGroup, "Tenant") {
		if name := draft.ToName(t.Name); d.Tenants[name] != nil && selector.Matches(labels.Set(t.At("metadata", "labels").TextMap())) {
			r.tenants = append(r.tenants, name)
		}
	}
	r.tenants = draft.Distinct(r.tenants)
	if len(r.tenants) == 0 {
		return nil, "it selects no tenant of the input"
	}
	return r, ""
}

func parseSelector(f source.Field) (labels.Selector, error) {
	var selector metav1.LabelSelector
	if err := f.Decode(&selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// classifyTenants returns the tenants of which a namespaceSelector selects every namespace, and the tenants
// of which it selects only some.
func (r *replication) classifyTenants(d *draft.Draft, selector labels.Selector) (every, some []string) {
	if selector.Empty() {
		return r.tenants, nil
	}
	for _, name := range r.tenants {
		unknown := false
		coverage := copies.ClassifyNamespaces(d, name, func(namespace string) bool {
			marks, found := d.FindLabels(namespace)
			unknown = unknown || !found
			return found && selector.Matches(marks)
		})
		switch {
		case coverage == copies.EveryNamespace:
			every = append(every, name)
		case coverage == copies.SomeNamespaces || unknown:
			some = append(some, name)
		}
	}
	return every, some
}

// listCopied returns the objects that an entry of the replication copies, as far as the input has them.
func (r *replication) listCopied(d *draft.Draft, resource source.Field) []copied {
	var all []copied
	for _, raw := range resource.At("rawItems").Items() {
		all = append(all, copied{raw, raw, resource})
	}
	for _, reference := range resource.At("namespacedItems").Items() {
		if isNamedSecret(reference) {
			all = append(all, copied{reference, reference, resource})
			continue
		}
		for _, o := range r.findReferenced(d, reference) {
			all = append(all, copied{reference, o.Root(), resource})
		}
	}
	return all
}

// findReferenced returns the objects of the input that a reference selects.
func (r *replication) findReferenced(d *draft.Draft, reference source.Field) []*source.Object {
	selector, err := parseSelector(reference.At("selector"))
	if err != nil {
		return nil
	}
	namespace, name := cmp.Or(reference.At("namespace").Text(), r.Namespace), reference.At("name").Text()
	var all []*source.Object
	for _, o := range d.Objects {
		if o.Skip || o.APIVersion != reference.At("apiVersion").Text() || o.Kind != reference.At("kind").Text() {
			continue
		}
		selected := o.Name == name || name == "" && selector.Matches(labels.Set(o.At("metadata", "labels").TextMap()))
		if selected && (namespace == "" || namespace == o.Namespace) {
			all = append(all, o)
		}
	}
	return all
}

// accountReplication writes the objects of a replication into croft.yaml, and reports the others.
func accountReplication(d *draft.Draft, o *source.Object) {
	resources := o.At("spec", "resources").Items()
	r, why := newReplication(d, o)
	if r == nil {
		kinds := slices.Concat(listKinds(resources, "rawItems"), listKinds(resources, "namespacedItems"), listKinds(resources, "generators"))
		reportLostObjects(d, o.Root(), why, kinds...)
		return
	}
	whole := len(resources) > 0
	for _, resource := range resources {
		whole = r.readResource(d, resource) && whole
	}
	r.accountSpec(d)
	if whole {
		o.Root().MarkChanged("objects", "croft.yaml has the objects; delete this one when croft runs")
	} else {
		o.Root().MarkNotKept("croft.yaml has only some of the objects; see the fields of this one before you delete it")
	}
}

// listKinds returns the kinds of the objects in a list of each entry of a replication. It is "" for a template.
func listKinds(resources []source.Field, list string) []string {
	var all []string
	for _, resource := range resources {
		for _, f := range resource.At(list).Items() {
			all = append(all, f.At("kind").Text())
		}
	}
	return all
}

// reportLostObjects reports objects of some kinds that croft.yaml cannot contain. It is a problem if they may restrict a tenant.
func reportLostObjects(d *draft.Draft, f source.Field, why string, kinds ...string) {
	if slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(grantingKinds, kind) }) {
		d.ReportLost(f, "%s; %s, since they may restrict the tenant", why, remedy)
		return
	}
	f.MarkNotKept("%s; %s", why, remedy)
}

// readResource reads one entry of a replication. It reports whether croft.yaml has all of its objects.
func (r *replication) readResource(d *draft.Draft, resource source.Field) bool {
	one := []source.Field{resource}
	kinds := slices.Concat(listKinds(one, "rawItems"), listKinds(one, "namespacedItems"), listKinds(one, "generators"))
	at := resource.At("namespaceSelector")
	selector, err := parseSelector(at)
	if err != nil {
		reportLostObjects(d, resource, "its namespaceSelector cannot be read: "+err.Error(), kinds...)
		return false
	}
	every, some := r.classifyTenants(d, selector)
	if len(every) == 0 && len(some) == 0 {
		reportLostObjects(d, resource, "its namespaceSelector selects no namespace of the input", kinds...)
		return false
	}
	if len(some) > 0 {
		reportLostObjects(d, at, "selects only some namespaces of "+wording.FormatFirst(some, 5)+", or namespaces that the input lacks, and croft writes objects into all namespaces of a tenant", kinds...)
	}
	if len(every) == 0 {
		resource.MarkNotKept("see its namespaceSelector")
		return false
	}
	var to []string
	whole := len(some) == 0
	for _, c := range r.listCopied(d, resource) {
		fields, kept := r.readCopied(d, c, every, r.every && selector.Empty())
		to, whole = append(to, fields...), whole && kept
	}
	whole = r.reportUnread(d, resource) && whole
	for _, field := range draft.Distinct(to) {
		resource.At("additionalMetadata").MarkKept(field)
		switch {
		case selector.Empty():
			at.MarkKept(field)
		case len(some) == 0:
			at.MarkChanged(field, "selects all namespaces of the tenant: croft writes the objects into its new namespaces, too")
		}
	}
	return whole
}

// reportUnread reports the fields of an entry that contain no objects that croft migrate reads. It reports whether
// nothing is lost.
func (r *replication) reportUnread(d *draft.Draft, resource source.Field) bool {
	whole := true
	for _, f := range resource.Fields() {
		switch f.Key() {
		case "rawItems", "namespaceSelector", "additionalMetadata":
		case "context":
			f.MarkNotKept("only Capsule's templates read it")
		case "namespacedItems":
			for _, reference := range f.Items() {
				if isNamedSecret(reference) || len(r.findReferenced(d, reference)) > 0 {
					continue
				}
				whole = false
				why := estate.ExplainRefusedKind(reference.At("apiVersion").Text(), reference.At("kind").Text())
				reportLostObjects(d, reference, cmp.Or(why, "the input lacks the objects that it selects: add them"), reference.At("kind").Text())
			}
		case "generators":
			for _, g := range f.Items() {
				whole = false
				reportLostObjects(d, g, "is a template, and croft.yaml has only parameters such as $(tenant)", "")
			}
		default:
			whole = false
			d.ReportLost(f, "croft migrate does not know this field of Capsule, which may change the objects: %s", remedy)
		}
	}
	return whole
}

// readCopied writes one object into the objects of tenants. It returns the fields of croft.yaml that contain it,
// and whether croft.yaml replaces it for all of the tenants.
func (r *replication) readCopied(d *draft.Draft, c copied, tenants []string, every bool) ([]string, bool) {
	kind := c.content.At("kind").Text()
	if kind == "Secret" {
		return r.readSecret(d, c, tenants, every)
	}
	if why := estate.ExplainRefusedKind(c.content.At("apiVersion").Text(), kind); why != "" {
		reportLostObjects(d, c.at, why, kind)
		return nil, false
	}
	if kind == "NetworkPolicy" && c.selectsEveryPod(d, tenants[0]) {
		if c.allowsAddresses() {
			reportLostObjects(d, c.at, "allows connections from addresses outside of the cluster, which croft does not allow", kind)
			return nil, false
		}
		c.at.MarkKept(network.Wall)
		return nil, true
	}
	var role, difference string
	if kind == "RoleBinding" {
		role, difference = copies.ReadPeople(d, c.content, tenants, buildExpand(d))
		if !copies.HasAccounts(c.content) {
			return c.accountPeople(tenants, role, difference)
		}
	}
	texts := map[string]string{}
	for _, name := range tenants {
		text, why := c.buildText(d, name, role)
		if why != "" {
			reportLostObjects(d, c.at, why, kind)
			return nil, false
		}
		texts[name] = text
	}
	declared := copies.Declare(d, texts, every)
	for _, field := range declared.To {
		if c.isReference() {
			c.at.MarkChanged(field, "the source objects become croft's, too, if they are in a namespace of the tenant: change them in croft.yaml")
		} else {
			c.at.MarkKept(field)
		}
	}
	if kind == "RoleBinding" {
		copies.ReportRole(c.content, declared.To, role, difference)
	}
	if len(declared.Refused) > 0 {
		reportLostObjects(d, c.at, declared.FormatRefused(), kind)
	}
	return declared.To, len(declared.Refused) == 0
}

// accountPeople accounts for a RoleBinding without service accounts.
func (c copied) accountPeople(tenants []string, role, difference string) ([]string, bool) {
	if role == "" {
		c.at.MarkNotKept("%s", difference)
		return nil, false
	}
	var to []string
	for _, name := range tenants {
		to = append(to, draft.TenantField(name, "access"))
		c.at.MarkChanged(draft.TenantField(name, "access"), "%s", difference)
	}
	return to, true
}

// accountSpec accounts for the settings of a replication other than its objects.
func (r *replication) accountSpec(d *draft.Draft) {
	const to = "objects"
	for _, f := range r.At("spec").Fields() {
		switch f.Key() {
		case "resources":
		case "scope", "tenantSelector":
			f.MarkKept(to)
		case "resyncPeriod":
			f.MarkChanged(to, "croft's operator writes changes and reverts drift at once, without a period")
		case "pruningOnDelete":
			f.MarkChanged(to, "croft's operator deletes the objects that you remove from croft.yaml")
		case "cordoned":
			if f.IsTrue() {
				f.MarkChanged(to, "Capsule did not update the copies: croft's operator does")
			} else {
				f.MarkKept(to)
			}
		case "dependsOn":
			f.MarkChanged(to, "croft's operator writes the objects in no particular order")
		case "settings":
			f.MarkChanged(to, "an object of the team with the same kind and name becomes croft's, and its content is replaced")
		case "serviceAccount":
			f.MarkNotKept("croft's operator writes the objects with its own rights")
		default:
			d.ReportLost(f, "croft migrate does not know this field of Capsule, which may limit the objects: compare them with croft.yaml, and remove the field")
		}
	}
}
