package price

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/cost/money"
)

const example = `currency: EUR
exchangeRate: {perUSD: 0.92, date: 2026-11-01}
instances:
  m5.large: {on-demand: 0.0883, spot: 0.031}
pools:
  apps: {on-demand: 0.72}
volumes:
  gp3: 0.0736
loadBalancerHour: 0.0207
`

const metrics = `# TYPE karpenter_cloudprovider_instance_type_offering_price_estimate gauge
karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="spot",instance_type="c5.large",zone="us-east-1a"} 0.0341
karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="on-demand",instance_type="c5.large",zone="us-east-1a"} 8.6e-02
karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type="reserved",instance_type="c5.large",zone="us-east-1a"} 0
karpenter_cloudprovider_instance_type_offering_available{capacity_type="spot",instance_type="c5.large",zone="us-east-1a"} 1
karpenter_cloudprovider_instance_type_cpu_cores{instance_type="c5.large"} 2
karpenter_cloudprovider_instance_type_memory_bytes{instance_type="c5.large"} 4.294967296e+09
`

// TestFindInstance expects each price from the first source that has it, with its source.
func TestFindInstance(t *testing.T) {
	euros, err := Parse("prices.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	withMetrics := New()
	if err := withMetrics.AddEstimates("metrics.txt", []byte(metrics)); err != nil {
		t.Fatal(err)
	}
	const table = "AWS on-demand in us-east-1 on " + tableDay
	for name, c := range map[string]struct {
		list *List
		of   Offering
		want Price
	}{
		"table":              {New(), Offering{CapacityType: "on-demand", InstanceType: "m5.large", Region: "us-east-1"}, Price{96_000, true, false, table}},
		"another region":     {New(), Offering{CapacityType: "on-demand", InstanceType: "m5.large", Region: "eu-west-1"}, Price{96_000, true, true, table}},
		"another partition":  {New(), Offering{CapacityType: "on-demand", InstanceType: "m5.large", Region: "cn-north-1"}, Price{}},
		"spot in the table":  {New(), Offering{CapacityType: "spot", InstanceType: "m5.large", Region: "us-east-1"}, Price{}},
		"unknown type":       {New(), Offering{CapacityType: "on-demand", InstanceType: "c-4x-amd64-linux"}, Price{}},
		"no capacity type":   {New(), Offering{InstanceType: "m5.large"}, Price{}},
		"Karpenter":          {withMetrics, Offering{CapacityType: "on-demand", InstanceType: "c5.large", Zone: "us-east-1a"}, Price{86_000, true, false, "Karpenter's estimate"}},
		"Karpenter's spot":   {withMetrics, Offering{CapacityType: "spot", InstanceType: "c5.large", Zone: "us-east-1a"}, Price{34_100, true, true, "Karpenter's estimate"}},
		"another zone":       {withMetrics, Offering{CapacityType: "spot", InstanceType: "c5.large", Zone: "us-east-1b"}, Price{}},
		"a placeholder of 0": {withMetrics, Offering{CapacityType: "reserved", InstanceType: "c5.large", Zone: "us-east-1a"}, Price{}},
		"file":               {euros, Offering{CapacityType: "spot", InstanceType: "m5.large", Pool: "apps"}, Price{31_000, true, false, "prices.yaml"}},
		"file with a factor": {euros, Offering{CapacityType: "on-demand", InstanceType: "m5.large", Pool: "apps"}, Price{63_576, true, false, "prices.yaml × 0.72 of pool apps in prices.yaml"}},
		"converted": {euros, Offering{CapacityType: "on-demand", InstanceType: "m5.xlarge", Pool: "apps", Region: "us-east-1"},
			Price{127_181, true, false, table + " × 0.92 EUR/USD of 2026-11-01 × 0.72 of pool apps in prices.yaml"}},
	} {
		if got := c.list.FindInstance(c.of); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := euros.FindVolume("gp3"); got != (Price{73_600, true, false, "prices.yaml"}) {
		t.Errorf("gp3: %+v", got)
	}
	if got := euros.FindVolume("io2"); got.Known {
		t.Errorf("io2 has no price, but: %+v", got)
	}
	if got := euros.FindLoadBalancer(); got != (Price{20_700, true, false, "prices.yaml"}) {
		t.Errorf("load balancer: %+v", got)
	}
	if got := New().FindLoadBalancer(); got.Known {
		t.Errorf("load balancers have no price by default, but: %+v", got)
	}
}

// TestSizes reads the sizes of instance types, and the offerings, from Karpenter's metrics.
func TestSizes(t *testing.T) {
	list := New()
	if !list.IsOffered(Offering{InstanceType: "c5.large"}) || len(list.Sizes()) != 0 {
		t.Error("without metrics, sizes are known or no instance is offered")
	}
	if err := list.AddEstimates("metrics.txt", []byte(metrics)); err != nil {
		t.Fatal(err)
	}
	if got := list.Sizes(); len(got) != 1 || got["c5.large"] != (Size{2000, 4096}) {
		t.Errorf("sizes: %v", got)
	}
	for zone, want := range map[string]bool{"us-east-1a": true, "us-east-1b": false} {
		if got := list.IsOffered(Offering{CapacityType: "spot", InstanceType: "c5.large", Zone: zone}); got != want {
			t.Errorf("offered in %s: %t", zone, got)
		}
	}
	for _, value := range []string{"NaN", "-1", "1e300", "many"} {
		const name = `karpenter_cloudprovider_instance_type_cpu_cores{instance_type="c5.large"} `
		if err := New().AddEstimates("m", []byte(name+value)); err == nil || err.Error() != "m:1: the size of c5.large must be a number from 0 to 2^50" {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestParseRefuses expects the line, the path of the field, the problem and the remedy.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"currency: euro":               `prices.yaml:1: currency: the text "euro" is not a currency; write a code of three capital letters, such as EUR`,
		"currency: EUR":                "prices.yaml:1: exchangeRate: is required with the currency EUR, since other prices are in USD; write {perUSD: 0.92, date: 2026-11-01}",
		"exchangeRate: {perUSD: 0.92}": "prices.yaml:1: exchangeRate: has no effect with the currency USD; leave it out",
		"currency: EUR\nexchangeRate: {perUSD: 0, date: today}": "prices.yaml:2: exchangeRate.perUSD: must be above 0\n" +
			"prices.yaml:2: exchangeRate.date: the text \"today\" is not a day; write the day of the rate, such as 2026-11-01",
		"instances: {m5.large: 0.1}":              "prices.yaml:1: instances.m5.large: must be a mapping of capacity types; write {on-demand: 0.1}",
		"instances:\n  m5.large: {ondemand: 0.1}": "prices.yaml:2: instances.m5.large.ondemand: there is no such field; did you mean on-demand?",
		"instances:\n  m5.large:\n    spot: -1":   "prices.yaml:3: instances.m5.large.spot: the number -1: must not be negative; write 0 for things that cost nothing",
		"pools: 0.7":                              "prices.yaml:1: pools: must be a mapping, such as {apps: {on-demand: 0.72}}, not the number 0.7",
		"volumes: [gp3]":                          "prices.yaml:1: volumes: must be a mapping, such as {gp3: 0.08}, not a list",
		"volumes: {gp3: cheap}":                   `prices.yaml:1: volumes.gp3: the text "cheap": must be a number, such as 0.0225`,
		"loadBalancerHour: {perHour: 1}":          "prices.yaml:1: loadBalancerHour: must be a number, such as 0.0225, not a mapping",
		"loadBalancersHour: 1":                    "prices.yaml:1: loadBalancersHour: there is no such field; did you mean loadBalancerHour?",
		"":                                        "prices.yaml: must be one document, such as {currency: USD, loadBalancerHour: 0.0225}",
		"a: [":                                    "prices.yaml:1: not YAML: did not find expected node content",
	} {
		if _, err := Parse("prices.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q:\n%v\nwant\n%s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                       "metrics.txt: the file has no metric " + metric + "; write the output of Karpenter's /metrics to it",
		metric + `{instance_type="m5.large"} -1`: "metrics.txt:1: the price of m5.large must not be negative; write 0 for things that cost nothing",
	} {
		if err := New().AddEstimates("metrics.txt", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q:\n%v\nwant\n%s", text, err, want)
		}
	}
}

// TestTable reads each entry of the generated table.
func TestTable(t *testing.T) {
	entries := 0
	for family, sizes := range onDemand {
		for _, entry := range strings.Fields(sizes) {
			size, _, _ := strings.Cut(entry, ":")
			rate := findOnDemand(family + "." + size)
			if rate == nil || rate.Sign() <= 0 || money.Round(rate) > 1000*money.Unit {
				t.Errorf("%s.%s costs %v", family, size, rate)
			}
			entries++
		}
	}
	if entries < 1000 {
		t.Errorf("the table has only %d prices", entries)
	}
}

// TestMemoryRatio computes the amount of memory that costs as much as one CPU, from families with
// 2, 4 and 8 GiB per CPU. The ledger's constant must be within the range of these ratios.
func TestMemoryRatio(t *testing.T) {
	const gibPerCPU = 9
	least, most := 1000.0, 0.0
	for _, family := range [][3]string{{"c5", "m5", "r5"}, {"c6i", "m6i", "r6i"}, {"c6g", "m6g", "r6g"}, {"c7i", "m7i", "r7i"}} {
		var perCPU [3]float64
		for i, name := range family {
			perCPU[i], _ = findOnDemand(name + ".xlarge").Float64()
			perCPU[i] /= 4
		}
		for _, pair := range [][2]int{{0, 1}, {1, 2}, {0, 2}} {
			memory := []float64{2, 4, 8}
			perGiB := (perCPU[pair[1]] - perCPU[pair[0]]) / (memory[pair[1]] - memory[pair[0]])
			ratio := (perCPU[pair[0]] - perGiB*memory[pair[0]]) / perGiB
			t.Logf("%s and %s: one CPU costs as much as %.1f GiB", family[pair[0]], family[pair[1]], ratio)
			least, most = min(least, ratio), max(most, ratio)
		}
	}
	if gibPerCPU < least-1 || gibPerCPU > most {
		t.Errorf("the table's ratios are from %.1f to %.1f GiB, and the ledger's is %d", least, most, gibPerCPU)
	}
}
