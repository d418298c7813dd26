import LarderDevice
import LarderEvents
import TestSupport
import Testing

@Suite("Degradation policy", .oneMinute)
struct DegradationPolicyTests {
    @Test func `each level has a behavior that can be replaced`() {
        var policy = DegradationPolicy.standard
        #expect(policy[.good] == NetworkBehavior())
        #expect(!policy[.constrained].allowsPrefetch && policy[.constrained].allowsRefresh)
        #expect(!policy[.offline].allowsRefresh && !policy[.offline].allowsPaging && !policy[.offline].sendsOutbox)
        policy.constrained.allowsPrefetch = true
        policy.constrained.renditionFactor = 0.25
        #expect(policy[.constrained].allowsPrefetch && policy[.constrained].pixels(400) == 100)
        for level in NetworkLevel.allCases { #expect(DegradationPolicy.none[level] == NetworkBehavior()) }
    }

    @Test func `a constrained network extends the lifetimes of the configured classes`() {
        let behavior = DegradationPolicy.standard[.constrained]
        #expect(behavior.lifetimeFactor(class: "interactive") == 2)
        #expect(behavior.lifetimeFactor(class: "critical") == 1)
        #expect(behavior.batch(50) == 100 && behavior.concurrency(6) == 3)
    }

    @Test(arguments: [-1, 0, .nan, .infinity, 1e300] as [Double])
    func `extreme factors leave at least one and do not trap`(_ factor: Double) {
        let behavior = NetworkBehavior(
            renditionFactor: factor,
            concurrencyFactor: factor,
            batchFactor: factor,
            lifetimeFactors: ["x": factor]
        )
        #expect(behavior.concurrency(4) >= 1 && behavior.batch(4) >= 1 && behavior.pixels(100) >= 1)
        #expect(behavior.pixels(100) <= 100)
        #expect(behavior.lifetimeFactor(class: "x") >= 1)
    }
}
