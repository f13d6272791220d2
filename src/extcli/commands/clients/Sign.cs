// Signs tokens of an extension. The header is $"Authorization: {Token.ClientId} {await Token.Sign(secret, "backend", …)}".
using System;
using System.Collections.Generic;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using System.Threading.Tasks;

public static class Token
{
    public static readonly string ClientId = Environment.GetEnvironmentVariable("EXTCLI_CLIENT_ID") ?? 'CLIENT_ID';
    public static readonly string Channel = Environment.GetEnvironmentVariable("EXTCLI_CHANNEL") ?? 'CHANNEL';
    private static readonly HttpClient Http = new HttpClient();

    // The time in Unix seconds: in tests the emulator's, whose clock may have been moved; otherwise the machine's.
    public static async Task<long> Now()
    {
        var emulator = Environment.GetEnvironmentVariable("EXTCLI_URL");
        if (string.IsNullOrEmpty(emulator)) return DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        using var request = new HttpRequestMessage(HttpMethod.Get, $"{emulator}/_emulator/clock");
        var token = Environment.GetEnvironmentVariable("EXTCLI_CONTROL_TOKEN"); // needed if it is in a container
        request.Headers.Add("X-Emulator-Token", token ?? "");
        using var response = (await Http.SendAsync(request)).EnsureSuccessStatusCode();
        using var answer = JsonDocument.Parse(await response.Content.ReadAsStringAsync());
        return answer.RootElement.GetProperty("now").GetInt64() / 1000;
    }

    // A token for a role: viewer, broadcaster, admin or backend. The secret is in base64.
    public static async Task<string> Sign(
        string secret, string role, string channelId = null, string userId = null, int seconds = 900)
    {
        var claims = new Dictionary<string, object> { ["exp"] = await Now() + seconds, ["role"] = role };
        if (channelId != null) claims["channel_id"] = channelId;
        if (userId != null) claims["user_id"] = userId;
        var signed = $"{Segment(new { alg = "HS256", typ = "JWT" })}.{Segment(claims)}";
        var key = Convert.FromBase64String(secret); // the key is what the base64 stands for, not its text
        using var hmac = new HMACSHA256(key);
        return $"{signed}.{Base64Url(hmac.ComputeHash(Encoding.UTF8.GetBytes(signed)))}";
    }

    private static string Segment(object value) => Base64Url(JsonSerializer.SerializeToUtf8Bytes(value));

    private static string Base64Url(byte[] content) =>
        Convert.ToBase64String(content).TrimEnd('=').Replace('+', '-').Replace('/', '_');
}
