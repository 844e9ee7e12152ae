package install

import (
	"embed"
	"io/fs"
	"text/template"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/rulefile"
)

// The names of the policies that are installed with croft and are no part of a wall.
const (
	// TenantsPolicy protects Tenants from deletion. It exists before the first Platform, and it
	// restricts the platform's own users.
	TenantsPolicy = "croft-tenants"
	// BudgetsPolicy refuses pods of tenants beyond their budget, and BudgetWarningsPolicy warns
	// about their workloads. A budget is no part of a wall, so that no attack tries it.
	BudgetsPolicy        = "croft-budgets"
	BudgetWarningsPolicy = "croft-budget-warnings"
	// PriceWarningsPolicy warns about the price of Deployments and StatefulSets.
	PriceWarningsPolicy = "croft-price-warnings"
)

// ruleFiles has a folder for each policy: see package rulefile.
//
//go:embed rules
var ruleFiles embed.FS

// PolicyObjects returns the policies that are installed with croft, and their bindings.
func PolicyObjects() []client.Object {
	var all []client.Object
	for _, policy := range append([]admissionpolicy.Validating{buildProbesPolicy(), buildConfigMapsPolicy(), buildRevisionPolicy()}, readPolicies()...) {
		all = append(all, policy.Objects()...)
	}
	return all
}

// ruleFunctions are the functions that the expressions in the rule files may call.
var ruleFunctions = template.FuncMap{
	"budgetText": func() string { return admissionpolicy.Quote(v1alpha1.BudgetAnnotation) },
	"budgetStage": func() string {
		return "namespaceObject.metadata.labels[" + admissionpolicy.Quote(v1alpha1.BudgetLabel) + "]"
	},
	"priceText":    func() string { return admissionpolicy.Quote(v1alpha1.PriceAnnotation) },
	"operatorUser": func() string { return admissionpolicy.Quote(admissionpolicy.OperatorUser) },
}

// readPolicies reads the policies from their files. They are part of the program, so a test finds any error
// in them.
func readPolicies() []admissionpolicy.Validating {
	folders, err := fs.Sub(ruleFiles, "rules")
	utilruntime.Must(err)
	policies, err := rulefile.ReadPolicies(folders, ruleFunctions)
	utilruntime.Must(err)
	var all []admissionpolicy.Validating
	for _, name := range []string{TenantsPolicy, BudgetsPolicy, BudgetWarningsPolicy, PriceWarningsPolicy} {
		policy, err := policies[name].Build(nil)
		utilruntime.Must(err)
		all = append(all, policy)
	}
	return all
}
