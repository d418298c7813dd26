/// A type-erased generator of random numbers.
package struct AnyRandom: RandomNumberGenerator, Sendable {
    package var source: any RandomNumberGenerator & Sendable

    package init(_ source: any RandomNumberGenerator & Sendable) { self.source = source }

    package mutating func next() -> UInt64 { source.next() }
}
