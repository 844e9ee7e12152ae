package cli

import (
	"fmt"
	"slices"

	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
)

// attackData is the data of an attack in `verify --list` and `--explain`.
type attackData struct {
	Name      string      `json:"name"`
	Wall      string      `json:"wall"`
	Kind      attack.Kind `json:"kind"`
	StoppedBy string      `json:"stoppedBy,omitempty"`
	// Summary describes the attempt.
	Summary string `json:"summary"`
	// Method describes how the attack is made, and Harm the harm that it would do.
	Method string `json:"by"`
	Harm   string `json:"why,omitempty"`
	// Rule is the requirement of the rule that stops the attack, and Exception the field
	// that permits more.
	Rule       string   `json:"rule,omitempty"`
	Exception  string   `json:"exception,omitempty"`
	References []string `json:"references,omitempty"`
}

func toAttackData(at attack.Attack, rules []wall.Rule) attackData {
	l := attackData{
		Name: at.Name, Wall: at.Wall, Kind: at.Kind, StoppedBy: at.StoppedBy.Name, Summary: at.Summary,
		Method: describeMeans(at, describeActor(at)), Harm: at.Harm, References: at.References,
	}
	for _, r := range rules {
		if r.Policy == at.StoppedBy.Policy && r.Name == at.StoppedBy.Rule {
			l.Rule, l.Exception = r.Summary, r.Exception
		}
	}
	return l
}

// describeAttacks implements --list and --explain: it describes attacks and runs none.
func (a *app) describeAttacks(scratch *verify.Scratch, o verifyOptions) error {
	switch {
	case o.output == formatJUnit:
		return fmt.Errorf("-o junit prints results of attacks, and --list and --explain try none: write one of table|json|yaml")
	case o.list:
		return a.listAttacks(scratch, o)
	case o.output == formatTable:
		return a.explainAttack(scratch.Attacks(), scratch.Rules(), o.explain)
	}
	attacks := scratch.Attacks()
	i := slices.IndexFunc(attacks, func(at attack.Attack) bool { return at.Name == o.explain })
	if i < 0 {
		return errUnknownAttack(o.explain)
	}
	return o.output.print(a.out, toAttackData(attacks[i], scratch.Rules()))
}

func errUnknownAttack(name string) error {
	return fmt.Errorf("--explain %s: there is no such attack: `croft verify --list` lists them; -f FILE adds those of your Platform's network dialect", name)
}

func (a *app) listAttacks(scratch *verify.Scratch, o verifyOptions) error {
	attacks := scratch.Attacks()
	if err := checkAttackNames(o.attacks, attacks); err != nil {
		return err
	}
	attacks = slices.DeleteFunc(attacks, func(at attack.Attack) bool { return !o.matchesAttack(at) })
	if o.output != formatTable {
		all, rules := make([]attackData, len(attacks)), scratch.Rules()
		for i, at := range attacks {
			all[i] = toAttackData(at, rules)
		}
		return o.output.print(a.out, map[string]any{"attacks": all})
	}
	var rows [][]string
	for _, at := range attacks {
		rows = append(rows, []string{at.Wall, string(at.Kind), at.Name, dashIfEmpty(at.StoppedBy.Name), at.Summary})
	}
	printTable(a.out, []string{"WALL", "KIND", "NAME", "STOPPED BY", "ATTEMPT"}, rows)
	return nil
}
