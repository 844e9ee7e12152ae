package bill

import (
	"errors"
	"slices"
	"strings"

	"croft.dev/croft/internal/cost/money"
)

// findForm returns the form with these columns.
func findForm(header []string, o Options) (form, error) {
	switch {
	case slices.ContainsFunc(header, func(c string) bool { return strings.HasPrefix(c, "line_item_") }):
		return newReport(header, o)
	case slices.Contains(header, "EffectiveCost") || slices.Contains(header, "BilledCost"):
		return newFocus(header, o)
	case slices.ContainsFunc(header, func(c string) bool { return strings.HasPrefix(c, "lineItem/") }):
		return nil, errors.New("the bill is a Cost and Usage Report of version 1: export version 2.0 with AWS Data Exports")
	default:
		return nil, errors.New("unknown columns: write a bill as AWS CUR 2.0 (with line_item_unblended_cost) or FOCUS 1.2 (with EffectiveCost)")
	}
}

// Columns of CUR 2.0. Source: AWS, "Cost and Usage Report (CUR) 2.0", table dictionary.
const (
	reportForm      = "AWS CUR 2.0"
	lineType        = "line_item_line_item_type"
	unblended       = "line_item_unblended_cost"
	lineCurrency    = "line_item_currency_code"
	usageStart      = "line_item_usage_start_date"
	usageEnd        = "line_item_usage_end_date"
	product         = "line_item_product_code"
	usageType       = "line_item_usage_type"
	onDemandCost    = "pricing_public_on_demand_cost"
	planCost        = "savings_plan_savings_plan_effective_cost"
	planCommitment  = "savings_plan_total_commitment_to_date"
	planUsed        = "savings_plan_used_commitment"
	reservationCost = "reservation_effective_cost"
	unusedUpfront   = "reservation_unused_amortized_upfront_fee_for_billing_period"
	unusedRecurring = "reservation_unused_recurring_fee"
	reportTags      = "resource_tags"
	// spotUsage is in the usage types of spot instances.
	spotUsage = "SpotUsage"
)

// costAndUsage is CUR 2.0.
type costAndUsage struct {
	columns
	times    [2]times
	tags     *tagReader
	costCode int
	pool     int
	spare    money.Decimal
}

func newReport(header []string, o Options) (form, error) {
	f := &costAndUsage{tags: newTagReader(o), costCode: -1, pool: -1}
	var err error
	f.columns, err = findColumns(header, reportForm,
		[]string{lineType, unblended, lineCurrency, usageStart, usageEnd, product, usageType},
		[]string{onDemandCost, planCost, planCommitment, planUsed, reservationCost, unusedUpfront, unusedRecurring, reportTags})
	if err != nil {
		return nil, err
	}
	// A query may select single tags, each as a column.
	for i, name := range header {
		key, isTag := strings.CutPrefix(name, reportTags)
		if !isTag || key == "" {
			continue
		}
		switch normalizeKey(key[1:]) {
		case normalizeKey(o.CostCodeTag):
			f.costCode = i
		case normalizeKey(o.PoolTag):
			f.pool = i
		}
	}
	if f.columns[reportTags] < 0 && f.costCode < 0 {
		_, err = findColumns(header, reportForm, []string{reportTags}, nil)
	}
	return f, err
}

func (f *costAndUsage) name() string { return reportForm }

func (f *costAndUsage) read(row []string, l *line) error {
	if err := readPeriod(f.columns, row, usageStart, usageEnd, &f.times, l); err != nil {
		return err
	}
	l.currency = f.get(row, lineCurrency)
	var err error
	if l.tags, err = f.tags.read(reportTags, f.get(row, reportTags)); err != nil {
		return err
	}
	if f.costCode >= 0 || f.pool >= 0 {
		l.tags = &tags{costCode: pick(row, f.costCode, l.tags.costCode), pool: pick(row, f.pool, l.tags.pool)}
	}
	l.class = classifyUsage(f.get(row, product), f.get(row, usageType))
	return f.readCost(row, l)
}

func pick(row []string, i int, otherwise string) string {
	if i < 0 || row[i] == "" {
		return otherwise
	}
	return strings.Clone(row[i])
}

// readCost reads the effective cost of a line, as AWS's documentation computes it from the type of the line,
// and its cost at list prices.
func (f *costAndUsage) readCost(row []string, l *line) error {
	kind := f.get(row, lineType)
	source := unblended
	switch kind {
	case "SavingsPlanCoveredUsage":
		source = planCost
	case "DiscountedUsage":
		source = reservationCost
	case "Usage":
	case "SavingsPlanRecurringFee":
		l.class = Other
		return f.readUnused(row, l, planCommitment, planUsed, true)
	case "RIFee":
		l.class = Other
		return f.readUnused(row, l, unusedUpfront, unusedRecurring, false)
	case "SavingsPlanNegation", "SavingsPlanUpfrontFee":
		// The lines of usage contain these costs.
		l.class, l.effective, l.list = Other, money.Decimal{}, money.Decimal{}
		return nil
	case "Credit", "Refund", "Discount", "BundledDiscount", "EdpDiscount", "PrivateRateDiscount", "RiVolumeDiscount", "SppDiscount",
		"SavingsPlanDiscount":
		l.class = Discounts
	default:
		l.class = Other // such as Tax and Fee
	}
	if f.columns[source] < 0 {
		return &fieldError{source, "lines of the type " + kind + " need this column: add it to the export"}
	}
	if err := f.readNumber(row, source, &l.effective); err != nil {
		return err
	}
	if f.get(row, onDemandCost) == "" || !IsCompared(l.class) {
		l.list.Set(&l.effective)
		return nil
	}
	if err := f.readNumber(row, onDemandCost, &l.list); err != nil {
		return err
	}
	// AWS writes the price of on-demand instances for spot instances, too, or 0. The difference is no discount: the list price
	// of a spot instance is its price.
	if l.list.Sign() == 0 || strings.Contains(f.get(row, usageType), spotUsage) {
		l.list.Set(&l.effective)
	}
	return nil
}

// readUnused reads the part of a commitment that no usage used: the difference or the sum of two columns.
func (f *costAndUsage) readUnused(row []string, l *line, first, second string, isDifference bool) error {
	if err := f.readNumber(row, first, &l.effective); err != nil {
		return err
	}
	if err := f.readNumber(row, second, &f.spare); err != nil {
		return err
	}
	if isDifference {
		l.effective.Subtract(&f.spare)
	} else {
		l.effective.Add(&f.spare)
	}
	l.list.Set(&l.effective)
	return nil
}

// classifyUsage classifies AWS's usage types, such as EUC1-BoxUsage:m5.large and EBS:VolumeUsage.gp3. A bill
// may lack the product.
func classifyUsage(productCode, usage string) Class {
	isEC2 := productCode == "AmazonEC2" || productCode == ""
	switch {
	case isEC2 && (strings.Contains(usage, "BoxUsage") && !strings.Contains(usage, "UnusedBox") ||
		strings.Contains(usage, spotUsage) || strings.Contains(usage, "DedicatedUsage")):
		return Nodes
	case isEC2 && strings.Contains(usage, "EBS:VolumeUsage"):
		return Volumes
	case (isEC2 || productCode == "AWSELB") && strings.Contains(usage, "LoadBalancerUsage"):
		return LoadBalancers
	default:
		return Other
	}
}

// Columns of FOCUS 1.2. Source: https://github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec, tag v1.2.
const (
	focusForm   = "FOCUS 1.2"
	effective   = "EffectiveCost"
	listCost    = "ListCost"
	currency    = "BillingCurrency"
	chargeStart = "ChargePeriodStart"
	chargeEnd   = "ChargePeriodEnd"
	category    = "ChargeCategory"
	service     = "ServiceName"
	services    = "ServiceCategory"
	subservice  = "ServiceSubcategory"
	commitment  = "CommitmentDiscountStatus"
	focusTags   = "Tags"
	// awsUsage and awsService are columns of AWS's exports.
	awsUsage   = "x_UsageType"
	awsService = "x_ServiceCode"
)

// focus is FOCUS 1.2.
type focus struct {
	columns
	times [2]times
	tags  *tagReader
}

func newFocus(header []string, o Options) (form, error) {
	at, err := findColumns(header, focusForm,
		[]string{effective, currency, chargeStart, chargeEnd, category, service, services, focusTags},
		[]string{listCost, subservice, commitment, awsUsage, awsService})
	return &focus{columns: at, tags: newTagReader(o)}, err
}

func (f *focus) name() string { return focusForm }

func (f *focus) read(row []string, l *line) error {
	if err := readPeriod(f.columns, row, chargeStart, chargeEnd, &f.times, l); err != nil {
		return err
	}
	l.currency = f.get(row, currency)
	var err error
	if l.tags, err = f.tags.read(focusTags, f.get(row, focusTags)); err != nil {
		return err
	}
	if err := f.readNumber(row, effective, &l.effective); err != nil {
		return err
	}
	l.class = f.classify(row, &l.effective)
	if f.get(row, listCost) == "" || !IsCompared(l.class) {
		l.list.Set(&l.effective)
		return nil
	}
	return f.readNumber(row, listCost, &l.list)
}

// classify classifies a row by its services, or by AWS's usage type.
func (f *focus) classify(row []string, cost *money.Decimal) Class {
	switch f.get(row, category) {
	case "Usage":
	case "Credit":
		return Discounts
	case "Adjustment":
		if cost.Sign() < 0 {
			return Discounts
		}
		return Other
	default:
		return Other
	}
	if f.get(row, commitment) == "Unused" {
		return Other
	}
	if usage := f.get(row, awsUsage); usage != "" {
		return classifyUsage(f.get(row, awsService), usage)
	}
	switch f.get(row, services) + "/" + f.get(row, subservice) {
	case "Compute/Virtual Machines":
		return Nodes
	case "Storage/Block Storage":
		return Volumes
	}
	if f.get(row, services) == "Networking" && strings.Contains(strings.ToLower(f.get(row, service)), "load balanc") {
		return LoadBalancers
	}
	return Other
}
