package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TenantBudget limits the cost of a tenant in a calendar month, in UTC. `croft ledger` measures the
// cost.
//
// +kubebuilder:validation:XValidation:rule="has(self.monthly) == has(self.currency)",message="set monthly and currency together, such as {monthly: 800, currency: EUR}; {} is no budget"
// +kubebuilder:validation:XValidation:rule="!has(self.at) || has(self.monthly)",message="set monthly and currency, of which at contains percentages"
// +kubebuilder:validation:XValidation:rule="!has(self.priceInResponse) || !self.priceInResponse || has(self.monthly)",message="set monthly and currency, whose rest priceInResponse shows"
type TenantBudget struct {
	// Monthly is the amount for a month, in units of the currency.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	Monthly int64 `json:"monthly,omitempty"`
	// Currency is the currency of monthly, such as EUR. It must be the ledger's.
	// +kubebuilder:validation:MaxLength=3
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]{3}$')",message="must be the code of a currency, such as EUR"
	// +optional
	Currency string `json:"currency,omitempty"`
	// At has the stage that begins when the cost reaches a percentage of the budget, by
	// percentages: {80: Warn, 100: DenyNewNodes, 120: DenyNewPods}. Defaults to {80: Warn}.
	// +kubebuilder:validation:MaxProperties=3
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.matches('^[1-9][0-9]{0,2}$'))",message="percentages are whole numbers from 1 to 999, such as {80: Warn, 120: DenyNewPods}"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !p.matches('^[1-9][0-9]{0,2}$') || self.all(q, !q.matches('^[1-9][0-9]{0,2}$') || int(p) >= int(q) || {'Warn': 1, 'DenyNewNodes': 2, 'DenyNewPods': 3}[self[p]] < {'Warn': 1, 'DenyNewNodes': 2, 'DenyNewPods': 3}[self[q]]))",message="a higher percentage must have a stricter stage, in this order: Warn, DenyNewNodes, DenyNewPods"
	// +optional
	At map[string]BudgetStage `json:"at,omitempty"`
	// PriceInResponse warns users who create a Deployment or a StatefulSet, or change its replicas or requests, with its
	// expected cost per month and the rest of the budget. Defaults to false.
	// +optional
	PriceInResponse bool `json:"priceInResponse,omitempty"`
}

// BudgetStage is the effect of a cost that has reached a part of the budget. Existing pods are
// never removed.
//
// +kubebuilder:validation:Enum=Warn;DenyNewNodes;DenyNewPods
type BudgetStage string

const (
	// BudgetWarn warns users who create or change workloads.
	BudgetWarn BudgetStage = "Warn"
	// BudgetDenyNewNodes lets new pods run on existing nodes only. Karpenter launches no nodes
	// for them.
	BudgetDenyNewNodes BudgetStage = "DenyNewNodes"
	// BudgetDenyNewPods refuses new pods.
	BudgetDenyNewPods BudgetStage = "DenyNewPods"
)

// TenantBudgetStatus is the cost of a tenant in a month compared with its budget. The cost is the one
// that the tenant's people may read: without its share of the idle cost of pools that other
// tenants use, too.
type TenantBudgetStatus struct {
	// Month is the calendar month in UTC, such as 2026-11.
	// +required
	Month string `json:"month"`
	// Monthly is the budget, and Currency its currency.
	// +required
	Monthly int64 `json:"monthly"`
	// Currency is the currency of all amounts.
	// +required
	Currency string `json:"currency"`
	// Spent is the cost since the beginning of the month, such as "812.40". It is absent until
	// the ledger has answered once in this month.
	// +optional
	Spent string `json:"spent,omitempty"`
	// Percent is the part of the budget that is spent, rounded down.
	// +optional
	Percent int64 `json:"percent,omitempty"`
	// Forecast is the expected cost of the whole month. It is absent if the ledger has no cost
	// of a complete day.
	// +optional
	Forecast string `json:"forecast,omitempty"`
	// Stage is in force. It is absent below the first percentage.
	// +optional
	Stage BudgetStage `json:"stage,omitempty"`
	// StagePercent is the percentage of the budget at which the stage begins. The stage ends
	// in the same month only if the cost falls two percentage points below it, or if the
	// budget is changed.
	// +optional
	StagePercent int64 `json:"stagePercent,omitempty"`
	// StageSpent is the cost when the stage began, which the messages to users state.
	// +optional
	StageSpent string `json:"stageSpent,omitempty"`
	// Prices are the prices of a CPU, or of 9 GiB of memory, for a month, by the tenant's pools, such as {apps: "28.45"}:
	// the mean of its own pods' requests, by the ledger. They change by 1 % or more. They are absent without
	// priceInResponse.
	// +optional
	Prices map[string]string `json:"prices,omitempty"`
	// Observed is the time of the ledger's answer from which the amounts are.
	// +optional
	Observed *metav1.Time `json:"observed,omitempty"`
	// Problem is the reason why the ledger's figures do not count, such as another currency.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// Reasons of events on a Tenant with a budget.
const (
	// ReasonBudgetReached: the cost of the month has reached a stage of the budget.
	ReasonBudgetReached = "BudgetReached"
	// ReasonBudgetStageEnded: no stage is in force any more: a new month has begun, or the
	// budget was changed.
	ReasonBudgetStageEnded = "BudgetStageEnded"
)
