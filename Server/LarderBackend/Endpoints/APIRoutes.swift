package enum APIRoutes {
    package static let all: [Route] =
        SessionEndpoints.routes + ProfileEndpoints.routes + FeedEndpoints.routes + LikeEndpoints.routes
        + BankEndpoints.routes + ChatEndpoints.routes + TaskEndpoints.routes + ImageEndpoints.routes
        + UploadEndpoints.routes
        + ChangeEndpoints.routes + LiveEndpoints.routes + SearchEndpoints.routes
}
