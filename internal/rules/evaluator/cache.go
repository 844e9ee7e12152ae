package evaluator

import (
	"fmt"
	"strings"
	"sync"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// cache has the compiled expressions of evaluators that are derived from each other:
// compiling is most of the work if they differ by one rule. It never evicts, because these
// evaluators live only as long as a command or a test.
type cache struct {
	mu      sync.Mutex
	results map[compilation]plugincel.CompilationResult
}

// compilation has everything that the result of compiling an expression depends on.
type compilation struct {
	expression string
	// returns are the types that the expression may return.
	returns string
	options plugincel.OptionalVariableDeclarations
	// variables are the names and types of the policy's variables that are declared before
	// the expression, in order.
	variables string
}

func newCache() *cache { return &cache{results: map[compilation]plugincel.CompilationResult{}} }

// compiler compiles the expressions of one policy, unless the cache already has them.
type compiler struct {
	plugincel.Compiler
	cache     *cache
	variables strings.Builder
}

// newCompiler returns the API server's compiler for one policy, and the caching compiler that
// it uses.
func newCompiler(c *cache) (*plugincel.CompositedCompiler, *compiler, error) {
	composited, err := plugincel.NewCompositedCompiler(base())
	if err != nil {
		return nil, nil, err
	}
	cached := &compiler{Compiler: composited.Compiler, cache: c}
	composited.Compiler, composited.ConditionCompiler = cached, cached
	return composited, cached, nil
}

// recordVariable records a variable of the policy, on which later expressions depend.
func (c *compiler) recordVariable(name string, r plugincel.CompilationResult) {
	fmt.Fprintf(&c.variables, "%s %s\n", name, r.OutputType)
}

// CompileCELExpression implements plugincel.Compiler.
func (c *compiler) CompileCELExpression(e plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations, mode environment.Type) plugincel.CompilationResult {
	key := compilation{expression: e.GetExpression(), returns: fmt.Sprint(e.ReturnTypes()), options: options, variables: c.variables.String()}
	c.cache.mu.Lock()
	result, ok := c.cache.results[key]
	c.cache.mu.Unlock()
	if !ok {
		result = c.Compiler.CompileCELExpression(e, options, mode)
		c.cache.mu.Lock()
		c.cache.results[key] = result
		c.cache.mu.Unlock()
	}
	result.ExpressionAccessor = e
	return result
}

// CompileCondition implements plugincel.ConditionCompiler.
func (c *compiler) CompileCondition(expressions []plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations, mode environment.Type) plugincel.ConditionEvaluator {
	results := make([]plugincel.CompilationResult, len(expressions))
	for i, e := range expressions {
		if e != nil {
			results[i] = c.CompileCELExpression(e, options, mode)
		}
	}
	return plugincel.NewCondition(results)
}
