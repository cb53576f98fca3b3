// What the configuration of an SMTP client looks like. Passwords are read from where the client keeps its secrets, and never
// printed.

export interface SmtpServer {
  host: string;
  /** Of submission with STARTTLS. */
  port: number;
  username: string;
}

type Snippet = (server: SmtpServer) => string;

export const snippets: Readonly<Record<string, Snippet>> = {
  nodemailer: ({ host, port, username }) => `import { createTransport } from ${JSON.stringify("nodemailer")};

const transport = createTransport({
  host: "${host}",
  port: ${port},
  requireTLS: true,
  pool: true,
  auth: { user: "${username}", pass: process.env.SMTP_PASSWORD },
});`,
  django: ({ host, port, username }) => `# settings.py
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
EMAIL_HOST = "${host}"
EMAIL_PORT = ${port}
EMAIL_USE_TLS = True
EMAIL_HOST_USER = "${username}"
EMAIL_HOST_PASSWORD = os.environ["SMTP_PASSWORD"]`,
  rails: ({ host, port, username }) => `# config/environments/production.rb
config.action_mailer.delivery_method = :smtp
config.action_mailer.smtp_settings = {
  address: "${host}",
  port: ${port},
  user_name: "${username}",
  password: ENV.fetch("SMTP_PASSWORD"),
  authentication: :plain,
  enable_starttls: true
}`,
  laravel: ({ host, port, username }) => `# .env
MAIL_MAILER=smtp
MAIL_HOST=${host}
MAIL_PORT=${port}
MAIL_USERNAME=${username}
MAIL_PASSWORD=
MAIL_SCHEME=smtp`,
  wordpress: ({
    host,
    port,
    username,
  }) => `// wp-config.php: define('SMTP_PASSWORD', '…'); then in a plugin, or functions.php of the theme:
add_action('phpmailer_init', function ($mailer) {
    $mailer->isSMTP();
    $mailer->Host = '${host}';
    $mailer->Port = ${port};
    $mailer->SMTPSecure = 'tls';
    $mailer->SMTPAuth = true;
    $mailer->Username = '${username}';
    $mailer->Password = SMTP_PASSWORD;
});`,
  msmtp: ({ host, port, username }) => `# ~/.msmtprc, mode 0600
account default
host ${host}
port ${port}
tls on
tls_starttls on
auth on
user ${username}
passwordeval cat ~/.smtp-password
from hello@acme.example`,
  swaks: ({ host, port, username }) => `swaks --server ${host}:${port} --tls --tls-verify \\
  --auth PLAIN --auth-user ${username} \\
  --from hello@acme.example --to you@example.com
# it asks for the password`,
  git: ({
    host,
    port,
    username,
  }) => `# git send-email asks for the password, or takes it from git's credential helper
git config --global sendemail.smtpServer ${host}
git config --global sendemail.smtpServerPort ${port}
git config --global sendemail.smtpEncryption tls
git config --global sendemail.smtpUser ${username}`,
};
