"""The people of the fixtures, and whom and what for they pay."""

# handle, display name, language, bio, location
PEOPLE = [
    ("ana", "Ana Ruiz", "es", "Bread, bikes and bad puns. She/ella 🚲", "Valencia"),
    ("ben", "Ben Okafor", "en", "Type nerd. Ask me about ligatures.", "Leeds"),
    ("chidi", "Chidi Eze", "en", "Teaching maths, learning trumpet 🎺", "Lagos"),
    ("daria", "Дарья Петрова", "ru", "Фотографирую туман. Пью чай.", "Казань"),
    ("emre", "Emre Yılmaz", "tr", "Deniz, kedi, kahve ☕️", "İzmir"),
    ("fatima", "فاطمة حداد", "ar", "مهندسة وقارئة. أحب الليل الهادئ.", "عمّان"),
    ("goran", "Goran Novak", "en", "Woodworker. Nine fingers, all mine.", "Zagreb"),
    ("hana", "佐藤 花", "ja", "植物と本と猫🌱", "京都"),
    ("ivo", "Ivo Marinov", "en", "Night trains > planes", "Plovdiv"),
    ("jiwoo", "김지우", "ko", "등산하는 개발자 ⛰️", "서울"),
    ("kofi", "Kofi Mensah", "en", "Radio plays and long walks", "Accra"),
    ("lena", "Lena Fischer", "de", "Baut Fahrräder um. Meistens gewollt.", "Leipzig"),
    ("mei", "陈美", "zh", "煮面的人 🍜", "成都"),
    ("nils", "Nils Lindqvist", "en", "Sails slowly, lands eventually ⛵️", "Göteborg"),
    ("olga", "Ольга Мороз", "ru", "Орнитолог-любитель 🐦", "Минск"),
    ("pau", "Pau Ferrer", "es", "Bomber@ de vocació, cuiner de debò 👩🏽‍🚒", "Girona"),
    ("quinn", "Quinn Murphy", "en", "they/them · climbing, crosswords, cats", "Cork"),
    ("rosa", "Rosa Silva", "pt", "Huerto en un balcón de 4 m² 🍅", "Porto"),
    ("sami", "سامي منصور", "ar", "أطبخ وأكتب وأنسى المفاتيح", "بيروت"),
    ("tara", "तारा शर्मा", "hi", "चाय, बारिश, किताबें 📚", "पुणे"),
    ("uma", "Uma Iyer", "en", "Astronomy outreach. The moon is underrated 🌔", "Chennai"),
    ("vera", "Vera Dubois", "fr", "Restores clocks; always late", "Lyon"),
    ("wen", "林文", "zh", "慢跑和慢生活", "台北"),
    ("ximena", "Ximena Castro", "es", "Hago mapas de cosas que no existen 🗺️", "Oaxaca"),
    ("yael", "יעל לוי", "he", "ציפורים, פסנתר, קפה שחור", "חיפה"),
    ("zoe", "Ζωή Παππά", "el", "Κολυμπάω όλο τον χρόνο 🌊", "Χανιά"),
    ("anan", "อนันต์ ศรีสุข", "th", "ชอบกินเผ็ด ชอบแมว", "เชียงใหม่"),
    ("bea", "Bea Rossi", "it", "Ceramics. Everything wobbles.", "Faenza"),
    ("caleb", "Caleb Stone", "en", "Dad jokes as a service 👨‍👩‍👧‍👦", "Duluth"),
    ("dimitra", "Δήμητρα Κώστα", "el", "Μεταφράστρια. Διαβάζω ετικέτες.", "Θεσσαλονίκη"),
    ("ezra", "Ezra Cohen", "he", "אופה לחם ביום שישי 🥖", "ירושלים"),
    ("freya", "Freya Berg", "en", "Knits on trains. Yes, that was me.", "Bergen"),
    ("gita", "गीता राव", "hi", "दौड़ती हूँ, पर धीरे-धीरे", "मैसूर"),
    ("hugo", "Hugo Lambert", "fr", "Sound engineer, quiet person", "Namur"),
    ("ines", "Inês Moreira", "pt", "Surf antes del café. A veces.", "Ericeira"),
    ("jonas", "Jonas Weber", "de", "Imker mit Höhenangst 🐝", "Freiburg"),
    ("kenji", "田中 健二", "ja", "各駅停車で旅する", "仙台"),
    ("lucia", "Lucía Ortega", "es", "Médica de guardia, poeta de noche 👩🏻‍⚕️", "Sevilla"),
    ("min", "박민", "ko", "빵집 투어 기록 🥐", "부산"),
    ("noor", "نور العلي", "ar", "خط عربي وقهوة", "الدوحة"),
    ("oleg", "Олег Ткач", "ru", "Чиню радио. Иногда само чинится.", "Одесса"),
    ("petra", "Petra Kowalska", "pl", "Cartographer of puddles", "Gdańsk"),
    ("raj", "Raj Menon", "en", "Cricket, compilers, coconut everything 🥥", "Kochi"),
    ("selin", "Selin Demir", "tr", "Haritalar ve rüzgârlar", "Bodrum"),
    ("tom", "Tom Hale", "en", "Allotment plot 27. Slugs: 3, me: 0", "Bristol"),
    ("ula", "Ula Nowak", "pl", "Piano tuner 🎹 I can hear your fridge.", "Kraków"),
    ("viktor", "Viktor Holm", "en", "Cold water, warm socks 🏳️‍🌈", "Aarhus"),
    ("will", "Will Tanaka", "en", "Half the recipe, twice the garlic", "Honolulu"),
    ("yuki", "鈴木 雪", "ja", "写真と散歩📷", "札幌"),
    ("zara", "Zara Khan", "en", "Puzzle designer. You are probably in one.", "Manchester"),
]

# By currency and role; a shop's place in its list is what SHOPPING names.
PAYEES = {
    "EUR": {
        "employer": ["Hafenwerk eG", "Ayuntamiento Digital", "Atelier Lumen"], "landlord": ["Casa Verde Homes", "Linden Housing"],
        "utility": ["Stadtstrom", "Fibra Norte"],
        "shop": ["Corner Market", "Panadería Sol", "Café Kontor", "Libreria Due Punti", "Metro & Tram", "Farmacia Centrale", "Velo Werkstatt", "Kino Orion"],
    },
    "USD": {
        "employer": ["Northwind Payroll", "Baobab Labs", "Riverside Clinic"], "landlord": ["Maple Street Rentals", "Harbour Flats"],
        "utility": ["City Power", "Bluebird Internet"],
        "shop": ["Greenleaf Grocers", "Sunrise Bakery", "Third Cup Coffee", "Paper Lantern Books", "City Transit", "Wellness Pharmacy", "Spoke & Chain", "Roxy Cinema"],
    },
    "JPY": {
        "employer": ["みどり出版", "海風システム", "北星大学"], "landlord": ["さくら不動産", "青葉ハウス"],
        "utility": ["みやこ電力", "つばさ光回線"],
        "shop": ["まるやスーパー", "麦の音ベーカリー", "喫茶らんぷ", "本の森", "市営交通", "あおい薬局", "自転車のハヤテ", "シネマ銀河"],
    },
}
UTILITIES = ["Electricity", "Internet"]

# Which shop, from how much to how much (in euros), and what is noted.
SHOPPING = [
    (0, 6, 78, ["Groceries", "Groceries", "Weekly shop", "Fruit and vegetables", "Dinner for eight", "Just milk, and then…"]),
    (0, 4, 40, ["Groceries", "Breakfast things", "Pasta, lemons, soap", "Cat food"]),
    (1, 2, 14, ["Bread", "Two rolls and a loaf", "Birthday cake", "Croissants 🥐"]),
    (2, 2, 12, ["Coffee", "Flat white", "Coffee and a book", "Coffee ×2"]),
    (2, 3, 16, ["Lunch", "Tea and cake", "Coffee ☕️"]),
    (3, 7, 52, ["Books", "A present", "Notebook", "The one with the lighthouse"]),
    (4, 2, 60, ["Tram", "Monthly pass", "Train", "Night bus"]),
    (5, 3, 36, ["Pharmacy", "Plasters", "Sun cream", "Hay fever again"]),
    (6, 8, 95, ["Bike repair", "New chain", "Inner tube", "Lights"]),
    (7, 8, 30, ["Cinema", "Two tickets", "Film and popcorn 🍿"]),
]
# What for, and from how much to how much.
BETWEEN_FRIENDS = [
    ("Dinner", 8, 38), ("Tickets", 12, 60), ("Birthday present for Lena", 10, 25), ("Petrol", 6, 30), ("Pizza 🍕", 7, 19), ("Thanks!", 5, 40),
    ("Concert 🎻", 15, 55), ("Groceries, my half", 6, 34), ("You know why 😄", 3, 15), ("Taxi", 5, 22), ("Ferry", 6, 24), ("Deposit for the hut", 20, 70),
    ("Apricots, 3 kg", 6, 14), ("For the plants", 5, 20), ("Lost the bet", 5, 10), ("ありがとう", 5, 30), ("Gracias 🙏🏽", 5, 30), ("Choir fees", 12, 24), ("Strings and rosin", 9, 35),
]
