import LarderTesting
import TestSupport
import Testing

@testable import LarderDemo
@testable import LarderTransport

@Suite("Names of requests", .oneMinute)
struct RequestNamesTests {
    @Test(arguments: [
        ("http://server/v1/profiles/user_1", "profile"), ("http://server/v1/me", "profile"),
        ("http://server/v1/profiles?limit=100", "people"),
        ("http://server/v1/posts/post_1/like", "post"), ("http://server/v1/tasks?status=open", "tasks"),
        ("http://server/v1/tasks/task_1", "task"), ("http://server/v1/conversations", "conversations"),
        ("http://server/v1/conversations/c/messages?limit=2", "messages"), ("http://server/v1/accounts", "accounts"),
        ("http://server/v1/accounts/a/transactions", "transactions"), ("http://server/v1/live", "changes"),
        ("http://server/v1/images/i?width=9", "images"), ("http://server/v1/what", "other"),
        ("http://server/v1/likes", "like"), ("http://server/v1/search?q=a", "search"),
        ("http://server/base/v1/transfers", "transfer"), ("http://server/v1/feed?after=1", "feed"),
        ("http://server/v1/feed#part", "feed"), ("http://server/healthz?from=/v1/feed", "other"),
        ("http://server/healthz#/v1/feed", "other"), ("http://v1/feed", "other"), ("http://server/v1", "other"),
    ])
    func `a request is named by its path`(url: String, name: String) {
        #expect(LarderClient.feature(of: TransportRequest(url: url)) == name)
    }
}
